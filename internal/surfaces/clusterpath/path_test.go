package clusterpath

import (
	"net/url"
	"testing"

	"freshet/internal/base/web"
)

// FuzzWithoutSegments checks that the result is a path whose segments equal those of the
// original.
func FuzzWithoutSegments(f *testing.F) {
	for _, path := range []string{
		"/", "/clusters/a/b", "/clusters/a%2Fb/c/d", "//a//b", "/%2e%2e/%20/x%zz",
		"/a b/%C3%A4/ä/c",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI("http://h/" + path)
		if err != nil {
			t.Skip()
		}
		out := withoutSegments(u, 3)
		var before, after web.Path
		before.Parse(u)
		after.Parse(out)
		for i := range 8 {
			if got, want := after.Segment(i), before.Segment(i+3); got != want {
				t.Fatalf("segment %d of %q without 3 (%q): got %q, want %q", i, path, out.EscapedPath(), got, want)
			}
		}
		if out.Path == "" || out.Path[0] != '/' {
			t.Errorf("%q became %q, want a path", path, out.Path)
		}
	})
}
