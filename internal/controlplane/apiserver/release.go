package apiserver

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"

	own "freshet/internal/base/version"
)

// release is the version at /version: that of the Kubernetes API, as clients expect, with ours
// after a plus sign, as other servers of that API have it. A build without the Makefile's flags has
// placeholders, with which kubectl fails; release replaces them.
type release struct {
	compatibility.EffectiveVersion
}

// invalidBuildChars matches characters that are not allowed after the plus sign of a semantic version.
var invalidBuildChars = regexp.MustCompile(`[^0-9A-Za-z.-]+`)

// Info implements compatibility.EffectiveVersion.
func (r release) Info() *version.Info {
	info := r.EffectiveVersion.Info()
	if info == nil {
		return nil
	}
	known, build := *info, own.Get()
	if strings.Contains(info.GitVersion, "$Format") {
		binary := r.BinaryVersion()
		known.GitVersion = fmt.Sprintf("v%d.%d.%d", binary.Major(), binary.Minor(), binary.Patch())
	}
	known.GitVersion += "+freshet." + invalidBuildChars.ReplaceAllString(build.Version, "-")
	known.GitCommit = build.Commit
	return &known
}
