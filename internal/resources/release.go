package resources

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
)

// release is the version at /version. A build without the Makefile's flags
// carries placeholders, at which kubectl fails; this fills in what is known.
type release struct {
	compatibility.EffectiveVersion
}

// Info implements compatibility.EffectiveVersion.
func (r release) Info() *version.Info {
	info := r.EffectiveVersion.Info()
	if info == nil || !strings.Contains(info.GitVersion, "$Format") {
		return info
	}
	known := *info
	binary := r.BinaryVersion()
	known.GitVersion = fmt.Sprintf("v%d.%d.%d", binary.Major(), binary.Minor(), binary.Patch())
	known.GitCommit = ""
	return &known
}
