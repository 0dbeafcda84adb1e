package apiserver

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"

	own "freshet/internal/base/version"
)

// release is the version at /version: that of the Kubernetes interface, as clients
// want it, with ours behind a plus sign, as others who serve that interface have it. A
// build without the Makefile's flags carries placeholders, at which kubectl fails; this
// fills in what is known.
type release struct {
	compatibility.EffectiveVersion
}

// notBuild is what may not be behind the plus sign of a semantic version.
var notBuild = regexp.MustCompile(`[^0-9A-Za-z.-]+`)

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
	known.GitVersion += "+freshet." + notBuild.ReplaceAllString(build.Version, "-")
	known.GitCommit = build.Commit
	return &known
}
