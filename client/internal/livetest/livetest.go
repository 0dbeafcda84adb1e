// Package livetest gives the tests and examples of this module the server that they run
// against. It does not start one: the module must not depend on the server. The package
// freshet/test/goclient of the repository starts a server for each package and runs the tests.
//
// FRESHET_TEST_SERVER is the base URL of the server, FRESHET_TOKEN_FILE and
// FRESHET_CREDENTIALS_FILE are its administrator's files. Tests create topics, accounts and
// clusters, so the variable is not the FRESHET_SERVER of a user who runs `go test`.
package livetest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	variable  = "FRESHET_TEST_SERVER"
	notTested = "NOT TESTED: " + variable + " is not set; go test ./test/goclient in the repository sets it"
)

// Run runs the tests of a package and returns the exit code. Without a server it skips the examples.
func Run(m *testing.M) int {
	flag.Parse()
	url := os.Getenv(variable)
	err := os.Setenv("FRESHET_SERVER", url) // which the examples read
	if url == "" && err == nil {
		fmt.Fprintln(os.Stderr, notTested+": examples are skipped")
		skip := flag.Lookup("test.skip").Value.String()
		err = flag.Set("test.skip", strings.Trim(skip+"|^Example", "|"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Server returns the base URL of the server and its administrator's token. It skips the test
// if there is no server.
func Server(t *testing.T) (url, token string) {
	t.Helper()
	url = os.Getenv(variable)
	if url == "" {
		t.Skip(notTested)
	}
	text, err := os.ReadFile(os.Getenv("FRESHET_TOKEN_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	return url, strings.TrimSpace(string(text))
}
