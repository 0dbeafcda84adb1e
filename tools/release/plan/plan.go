// Package plan says what a release consists of: its version, commit and time, its targets, and the
// names of its files. It builds nothing; the packages next to it do, one per kind of file.
package plan

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	Targets []Target  // the binaries to build
}

// Target is one binary of the release.
type Target struct {
	OS, Arch string
	CLI      bool // only the command line: built with the tag cli
}

// targets are the binaries of a release. Packages and images use those that are not CLI.
var targets = []Target{
	{OS: "linux", Arch: "amd64"},
	{OS: "linux", Arch: "arm64"},
	{OS: "linux", Arch: "amd64", CLI: true},
	{OS: "linux", Arch: "arm64", CLI: true},
	{OS: "darwin", Arch: "amd64", CLI: true},
	{OS: "darwin", Arch: "arm64", CLI: true},
	{OS: "windows", Arch: "amd64", CLI: true},
}

// Read finds out the release of the commit that is checked out at root. only has the names of the targets,
// separated by commas; empty means all.
func Read(ctx context.Context, root, dist, only string) (*Plan, error) {
	p := &Plan{Targets: targets}
	var err error
	if only != "" {
		if p.Targets, err = choose(strings.Split(only, ",")); err != nil {
			return nil, err
		}
	}
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

// choose returns the targets with these names.
func choose(names []string) (chosen []Target, err error) {
	for _, name := range names {
		i := slices.IndexFunc(targets, func(t Target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("target %q does not exist; use some of %v", name, targets)
		}
		chosen = append(chosen, targets[i])
	}
	return chosen, nil
}

// Stage returns the folder of the files that archives, packages and images contain. It is not published.
func (p *Plan) Stage() string { return filepath.Join(p.Dist, "stage") }

// Binary returns the path of a target's program. Its folder has only this file.
func (p *Plan) Binary(t Target) string {
	name := Name
	if t.OS == "windows" {
		name += ".exe"
	}
	return filepath.Join(p.Stage(), t.String(), name)
}

// Notices returns the path of the licences of everything that a target's program links.
func (p *Plan) Notices(t Target) string {
	return filepath.Join(p.Stage(), "notices", t.String()+".txt")
}

// ManPages returns the folder of the man pages, all of them of commands.
func (p *Plan) ManPages() string { return filepath.Join(p.Stage(), "man1") }

// Completions returns the folder of the completion scripts: freshet.bash, _freshet (zsh), freshet.fish and
// freshet.ps1.
func (p *Plan) Completions() string { return filepath.Join(p.Stage(), "completions") }

// Archive returns the path of a target's archive: freshet_VERSION_OS_ARCH.tar.gz, or
// freshet-cli_VERSION_OS_ARCH.tar.gz, or .zip for Windows.
func (p *Plan) Archive(t Target) string {
	extension := ".tar.gz"
	if t.OS == "windows" {
		extension = ".zip"
	}
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
