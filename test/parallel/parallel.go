// Package parallel lets a package run more tests at once than there are CPUs, because its tests mostly wait:
// for intervals, leases, elections and other processes.
package parallel

import (
	"flag"
	"strconv"
)

// Set sets how many tests run at once. TestMain calls it before it runs the tests; -parallel has no effect then.
func Set(tests int) {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}
