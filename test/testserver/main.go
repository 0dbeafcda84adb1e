package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Main runs the tests of a package that starts its own servers, and exits the process.
// It sets binary before the first test.
func Main(m interface{ Run() int }, binary *string) {
	code, err := withBinary(binary, m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// MainServer is Main for a package whose tests and examples share one server. Examples
// find it through the environment: FRESHET_SERVER, FRESHET_TOKEN_FILE and
// FRESHET_CREDENTIALS_FILE.
func MainServer(m interface{ Run() int }, binary *string, server **Server, options Options) {
	Main(runner(func() int {
		code, err := withServer(m, *binary, server, options)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}), binary)
}

type runner func() int

// Run calls the function.
func (r runner) Run() int { return r() }

func withServer(m interface{ Run() int }, binary string, server **Server, options Options) (code int, err error) {
	dir, err := os.MkdirTemp("", "freshet-test-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := Start(context.Background(), binary, dir, options)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Stop(time.Minute)) }()
	for name, value := range map[string]string{
		"FRESHET_SERVER": s.URL, "FRESHET_TOKEN_FILE": filepath.Join(s.DataDir, "admin.token"),
		"FRESHET_CREDENTIALS_FILE": filepath.Join(s.DataDir, "admin.json"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return 0, err
		}
	}
	*server = s
	return m.Run(), nil
}

func withBinary(binary *string, run func() int) (code int, err error) {
	dir, err := os.MkdirTemp("", "freshet-test-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if *binary, err = Binary(ctx, dir); err != nil {
		return 0, err
	}
	return run(), nil
}
