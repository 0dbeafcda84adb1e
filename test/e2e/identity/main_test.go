package identity_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"freshet/test/parallel"
	"freshet/test/testserver"
)

// binary is the program under test. server is a process that all tests share; each test
// uses its own organization.
var (
	binary string
	folder string
	server *testserver.Server
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	parallel.Set(16)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if folder, err = os.MkdirTemp("", "freshet-identity-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if binary, err = testserver.Binary(ctx, folder); err != nil {
		return 0, err
	}
	// At level debug, because the log is searched for secrets in the end.
	server, err = testserver.Start(ctx, binary, folder, testserver.Options{Args: []string{"--log-level", "debug"}})
	if err != nil {
		return 0, err
	}
	registerSecret("the operator's token", server.Token)
	code = m.Run()
	metrics, err := metricsOf(ctx, server)
	err = errors.Join(err, server.Stop(30*time.Second))
	if code == 0 && err == nil {
		err = searchEverything(server, metrics)
	}
	return code, err
}

func logOf(s *testserver.Server) string {
	return filepath.Join(folder, filepath.Base(s.DataDir)+".log")
}
