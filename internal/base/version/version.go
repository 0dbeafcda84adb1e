// Package version describes the build: version, commit and platform. It is a leaf without locks.
// Telemetry, the server and the CLI report the values.
package version

import (
	"runtime"
	"runtime/debug"

	"freshet/internal/base/errs"
)

// ErrNewer is the error for stored data that this version cannot read, because a later version
// wrote it. Wrap it with the name of the data.
var ErrNewer = errs.New(errs.Precondition,
	"was written by a newer version of the server; start that version, or restore a backup of this version; a member "+
		"of an ensemble can join again without data, with: freshet ensemble replace")

// version and commit are set by the linker (see the Makefile).
var (
	version = ""
	commit  = ""
)

// Info describes a build.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Get returns the description of the build. In a binary that was not built with the Makefile,
// the commit comes from the toolchain's build information, if that contains it.
func Get() Info {
	info := Info{Version: version, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info.Version == "" {
		info.Version = "devel"
	}
	if info.Commit == "" {
		info.Commit = vcsRevision()
	}
	return info
}

func vcsRevision() string {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return "unknown"
}
