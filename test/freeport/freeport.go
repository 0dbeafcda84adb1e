// Package freeport finds ports for the servers that tests start: test/testserver,
// test/cluster/chaos and tests that start one by hand.
//
// A server is told its port before it listens there, and meanwhile somebody else could
// take it. So ports are below those that the system gives to outgoing connections, and a
// lock on a file keeps each for the process that found it, until that ends: two tests, or
// two members of one group, never get the same.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// The system gives ports from 32,768 on to outgoing connections, unless it is told
// otherwise.
const lowest, highest = 10_000, 32_000

// kept holds the locks of this process. They end with it, so nothing is ever taken out;
// what is not reachable would be closed by the collector.
var kept struct {
	sync.Mutex
	files []*os.File
}

// Addresses finds n addresses on loopback.
func Addresses(ctx context.Context, n int) ([]string, error) {
	folder := filepath.Join(os.TempDir(), "freshet-ports")
	if err := os.MkdirAll(folder, 0o777); err != nil { //nolint:gosec // whoever runs tests here
		return nil, err
	}
	var found []string
	for range 1000 {
		if len(found) == n {
			break
		}
		port := strconv.Itoa(lowest + rand.IntN(highest-lowest))
		address := net.JoinHostPort("127.0.0.1", port)
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			continue // somebody listens there
		}
		_ = listener.Close() // only its address was wanted
		if keep(filepath.Join(folder, port)) {
			found = append(found, address)
		}
	}
	if len(found) < n {
		return nil, fmt.Errorf("found %d of %d free ports on loopback", len(found), n)
	}
	return found, nil
}

// keep locks a file; false when somebody else has.
func keep(path string) bool {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666) //nolint:gosec // the same
	if err != nil {
		return false
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = file.Close() // nothing was written
		return false
	}
	kept.Lock()
	defer kept.Unlock()
	kept.files = append(kept.files, file)
	return true
}
