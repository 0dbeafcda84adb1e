// Package version says what was built. It is a leaf: telemetry and cli show
// it, nothing decides by it.
package version

import (
	"runtime"
	"runtime/debug"
)

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

// Get returns the build's description. A binary built without the Makefile
// knows its commit only if the toolchain noted it.
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
