package membership

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestChangeLogger: a member that becomes ready, leaves or is lost is logged once; an unchanged
// member is not logged.
func TestChangeLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	n := &changeLogger{log: slog.New(slog.NewTextHandler(&out, nil)), self: "a"}
	for _, step := range []struct {
		live map[string]Record
		want string
	}{
		{map[string]Record{"a": {Ready: true}, "b": {Ready: true}}, ""},
		{map[string]Record{"a": {Ready: true}, "b": {Ready: true}, "c": {}}, ""},
		{
			map[string]Record{"a": {Ready: true}, "b": {Ready: true}, "c": {Ready: true}},
			`level=INFO msg="member is ready" member=c`,
		},
		{map[string]Record{"a": {}, "b": {Ready: true}, "c": {Ready: true}}, ""},
		{map[string]Record{"b": {Ready: true}}, `level=WARN msg="member is lost`},
		{map[string]Record{"b": {}}, ""},
		{map[string]Record{}, `level=INFO msg="member has left the ensemble" member=b`},
	} {
		out.Reset()
		n.logChanges(step.live)
		if got := out.String(); !strings.Contains(got, step.want) ||
			strings.Count(got, "\n") != min(len(step.want), 1) {
			t.Errorf("%v: got %q, want one line with %q", step.live, got, step.want)
		}
	}
}
