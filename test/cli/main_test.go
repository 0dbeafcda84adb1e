// Package cli tests the command line of the real binary against one real server, with
// scripts (*.txtar, in the language of testscript) and every example of every help text.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"freshet/test/parallel"
	"freshet/test/testserver"
)

// Shared by all tests: the folder with freshet and kubectl, and the server.
var (
	programs string
	server   *testserver.Server
	// startOwn starts a server for examples that change what other tests rely on.
	startOwn func() (*testserver.Server, error)
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	parallel.Set(4) // commands wait for the server
	dir, err := os.MkdirTemp("", "freshet-cli-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	binary, err := testserver.Binary(ctx, dir)
	if err != nil {
		return 0, err
	}
	programs = filepath.Join(dir, "programs")
	if err := os.Mkdir(programs, 0o700); err != nil {
		return 0, err
	}
	if err := os.Symlink(binary, filepath.Join(programs, "freshet")); err != nil {
		return 0, err
	}
	// There is only one machine, so ssh runs the examples' remote commands locally.
	const ssh = "#!/bin/sh\nshift\nexec sh -c \"$*\"\n"
	//nolint:gosec // a program must be executable
	if err := os.WriteFile(filepath.Join(programs, "ssh"), []byte(ssh), 0o700); err != nil {
		return 0, err
	}
	if err := kubectl(ctx, filepath.Join(programs, "kubectl")); err != nil {
		return 0, err
	}
	if server, err = testserver.Start(ctx, binary, dir, testserver.Options{}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop(time.Minute)) }()
	startOwn = func() (*testserver.Server, error) {
		return testserver.Start(ctx, binary, dir, testserver.Options{Kafka: true})
	}
	return m.Run(), nil
}

// kubectl puts the binary of KUBECTL, or one that it builds, at path.
func kubectl(ctx context.Context, path string) error {
	if binary := os.Getenv("KUBECTL"); binary != "" {
		return os.Symlink(binary, path)
	}
	build := exec.CommandContext(ctx, "go", "-C", "../../tools/k8s", "build", "-o", path, "-ldflags",
		"-X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1 -X "+
			"k8s.io/component-base/version.gitMinor=37", "./kubectl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building kubectl: %w\n%s", err, out)
	}
	return nil
}

// environment returns the environment of a user without contexts whose current directory
// is dir, where ./freshet-data is the data directory of the server s.
func environment(dir string, s *testserver.Server) []string {
	return []string{
		"PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + filepath.Join(dir, "home"), "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "NO_COLOR=",
		"KUBECONFIG=" + filepath.Join(dir, "home", ".kube", "config"),
		"SERVER=" + s.HTTPS, "SERVER_HTTP=" + s.URL, "DATA=" + s.DataDir,
	}
}

// populate creates the files in dir that environment refers to.
func populate(dir string, s *testserver.Server) error {
	return errors.Join(os.MkdirAll(filepath.Join(dir, "home"), 0o700),
		os.Symlink(s.DataDir, filepath.Join(dir, "freshet-data")))
}
