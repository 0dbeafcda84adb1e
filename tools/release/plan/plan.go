// Package plan says what a release consists of: its version, commit and time, its targets, and the
// names of its files. It builds nothing; the packages next to it do, one per kind of file.
package plan

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Name is the name of the program and the first part of every file name.
const Name = "freshet"

// Plan is the release of one commit.
type Plan struct {
	Version string    // semantic version without a v, from hack/version.sh
	Commit  string    // full hash, or "unknown"
	Time    time.Time // of the commit, or SOURCE_DATE_EPOCH; UTC. Every time stamp of a file is this one.
	Root    string    // folder of the repository
	Dist    string    // folder of the finished files
}

// Target is one binary of the release.
type Target struct {
	OS, Arch string
	CLI      bool // only the command line: built with the tag cli
}

// Targets are the binaries of a release. Packages and images use those that are not CLI.
var Targets = []Target{
	{OS: "linux", Arch: "amd64"},
	{OS: "linux", Arch: "arm64"},
	{OS: "linux", Arch: "amd64", CLI: true},
	{OS: "linux", Arch: "arm64", CLI: true},
	{OS: "darwin", Arch: "amd64", CLI: true},
	{OS: "darwin", Arch: "arm64", CLI: true},
	{OS: "windows", Arch: "amd64", CLI: true},
}

// Read finds out the release of the commit that is checked out at root.
func Read(ctx context.Context, root, dist string) (*Plan, error) {
	p := &Plan{}
	var err error
	if p.Root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if p.Dist, err = filepath.Abs(dist); err != nil {
		return nil, err
	}
	if p.Version, err = p.output(ctx, filepath.Join(p.Root, "hack", "version.sh")); err != nil {
		return nil, err
	}
	if p.Commit, err = p.output(ctx, "git", "rev-parse", "HEAD"); err != nil {
		p.Commit = "unknown"
	}
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		if seconds, err = p.output(ctx, "git", "show", "--no-patch", "--format=%ct", "HEAD"); err != nil {
			return nil, fmt.Errorf("the time of the release is unknown; build in a git clone or set SOURCE_DATE_EPOCH: %w",
				err)
		}
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %w", err)
	}
	p.Time = time.Unix(unix, 0).UTC()
	return p, nil
}

// Binary returns the path of a target's program. Its folder has only this file.
func (p *Plan) Binary(t Target) string {
	name := Name
	if t.OS == "windows" {
		name += ".exe"
	}
	return filepath.Join(p.Stage(), t.String(), name)
}

// Stage returns the folder of the files that archives, packages and images contain: the programs,
// man1 (man pages), completions, and NOTICES (licences of third parties). It is not published.
func (p *Plan) Stage() string { return filepath.Join(p.Dist, "stage") }

// File returns the path of a published file: freshet_VERSION_OS_ARCH.EXTENSION, or
// freshet-cli_VERSION_OS_ARCH.EXTENSION.
func (p *Plan) File(t Target, extension string) string {
	return filepath.Join(p.Dist, t.name()+"_"+p.Version+"_"+t.OS+"_"+t.Arch+extension)
}

// String returns freshet_OS_ARCH or freshet-cli_OS_ARCH.
func (t Target) String() string { return t.name() + "_" + t.OS + "_" + t.Arch }

func (t Target) name() string {
	if t.CLI {
		return Name + "-cli"
	}
	return Name
}

func (p *Plan) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.Root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s: %w", filepath.Base(name), err)
	}
	return strings.TrimSpace(string(out)), nil
}
