package store

import (
	"testing"

	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestALimitedListReadsTheNewestVersion(t *testing.T) {
	t.Parallel()
	atLeast := metav1.ResourceVersionMatchNotOlderThan
	for name, tc := range map[string]struct {
		options *metav1internal.ListOptions
		changed bool
	}{
		"none":              {nil, false},
		"no limit":          {&metav1internal.ListOptions{ResourceVersion: "0"}, false},
		"limit":             {&metav1internal.ListOptions{Limit: 1}, false},
		"limit and version": {&metav1internal.ListOptions{Limit: 1, ResourceVersion: "7"}, false},
		"limit and any version": {
			&metav1internal.ListOptions{Limit: 1, ResourceVersion: "0", ResourceVersionMatch: atLeast}, true,
		},
	} {
		got := withNewestVersion(tc.options)
		if changed := got != tc.options; changed != tc.changed {
			t.Errorf("%s: got changed %v, want %v", name, changed, tc.changed)
		}
		if tc.changed && (got.ResourceVersion != "" || got.ResourceVersionMatch != "" || got.Limit != 1 ||
			tc.options.ResourceVersion != "0") {
			t.Errorf("%s: got %+v of %+v, want the newest version in a copy", name, got, tc.options)
		}
	}
}
