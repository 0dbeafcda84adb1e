package generatecmd

import (
	"strings"
	"testing"

	"freshet/internal/cli/generatecmd/chart"
)

// TestImageHasOneName checks that the chart and the compose file use the image that a release builds.
func TestImageHasOneName(t *testing.T) {
	t.Parallel()
	composed, _, _ := strings.Cut(image(), ":")
	if charted, _, _ := strings.Cut(chart.Image(), ":"); charted != composed {
		t.Errorf("image: the chart uses %q, the compose file %q; want the same", charted, composed)
	}
}
