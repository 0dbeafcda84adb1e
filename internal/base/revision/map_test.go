package revision_test

import (
	"fmt"
	"maps"
	"testing"

	"freshet/internal/base/revision"
)

func TestMapKeepsTheNewestRevision(t *testing.T) {
	t.Parallel()
	type values = revision.Map[string, string]
	tests := map[string]struct {
		do   func(*values) bool // returns the result of its last step
		took bool
		want string // "" for none
	}{
		"put":                 {func(m *values) bool { return m.Put("k", 5, "a") }, true, "a"},
		"newer":               {func(m *values) bool { m.Put("k", 5, "a"); return m.Put("k", 6, "b") }, true, "b"},
		"same revision again": {func(m *values) bool { m.Put("k", 5, "a"); return m.Put("k", 5, "b") }, true, "b"},
		"older":               {func(m *values) bool { m.Put("k", 5, "a"); return m.Put("k", 4, "b") }, false, "a"},
		"revision not known":  {func(m *values) bool { m.Put("k", 5, "a"); return m.Put("k", 0, "b") }, true, "b"},
		"older than before that": {func(m *values) bool {
			m.Put("k", 5, "a")
			m.Put("k", 0, "b")
			return m.Put("k",
				4, "c")
		}, false, "b"},
		"deleted":                   {func(m *values) bool { m.Put("k", 5, "a"); return m.Delete("k", 6) }, true, ""},
		"late deletion":             {func(m *values) bool { m.Put("k", 5, "a"); return m.Delete("k", 4) }, false, "a"},
		"deletion of the unknown":   {func(m *values) bool { return m.Delete("k", 6) }, true, ""},
		"deleted twice":             {func(m *values) bool { m.Delete("k", 6); return m.Delete("k", 6) }, true, ""},
		"older deletion afterwards": {func(m *values) bool { m.Delete("k", 6); return m.Delete("k", 5) }, false, ""},
		"late put after deletion":   {func(m *values) bool { m.Delete("k", 6); return m.Put("k", 5, "a") }, false, ""},
		"late put, two deletions": {func(m *values) bool {
			m.Delete("k", 6)
			m.Delete("k", 4)
			return m.Put("k", 5,
				"a")
		}, false, ""},
		"put at the deletion": {func(m *values) bool { m.Delete("k", 6); return m.Put("k", 6, "a") }, true, "a"},
		"made again":          {func(m *values) bool { m.Delete("k", 6); return m.Put("k", 7, "b") }, true, "b"},
		"deleted without a revision": {func(m *values) bool {
			m.Put("k", 5, "a")
			m.Delete("k", 0)
			return m.Put("k", 4,
				"b")
		}, true, "b"},
		"deleted forever": {func(m *values) bool {
			m.Put("k", 5, "a")
			m.Delete("k",
				revision.Forever)
			return m.Put("k", 9, "b")
		}, false, ""},
		"forever, no revision": {func(m *values) bool {
			m.Delete("k", revision.Forever)
			return m.Put("k", 0,
				"b")
		}, false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := revision.NewMap[string, string](10)
			m.Put("other", 3, "x")
			if got := tc.do(m); got != tc.took {
				t.Errorf("last step = %v, want %v", got, tc.took)
			}
			if got, ok := m.Get("k"); got != tc.want || ok != (tc.want != "") {
				t.Errorf("Get = %q, %v; want %q, %v", got, ok, tc.want, tc.want != "")
			}
			want := map[string]string{"other": "x"}
			if tc.want != "" {
				want["k"] = tc.want
			}
			if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != len(want) {
				t.Errorf("All = %v, Len = %d; want %v, %d", got, m.Len(), want, len(want))
			}
		})
	}
}

func TestTombstonesAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 4
	stones := revision.NewTombstones[string](limit)
	stones.Add("k0", 1)
	for i := range 10 {
		stones.Add(fmt.Sprint("k", i), int64(i+10)) // k0 keeps its age and gets the newer revision
	}
	for i := range 10 {
		key, want := fmt.Sprint("k", i), i >= 10-limit
		if got := stones.Cover(key, int64(i+9)); got != want {
			t.Errorf("Cover(%s) = %v, want %v", key, got, want)
		}
	}
}
