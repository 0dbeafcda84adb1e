package messagecmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet.dev/client"
)

// TestConsumeWaitsForTheFilter: a consumer does not end while the server may still pass over messages, also
// when none was passed over since the last question, and when all that are left are leased by the evaluation.
func TestConsumeWaitsForTheFilter(t *testing.T) {
	var backlog, leased, delayed, passed int64
	filter := "x > 1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/filter") {
			_, _ = fmt.Fprintf(w, `{"filter":%q}`, filter)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/partitions") {
			_, _ = fmt.Fprint(w, `{"partitions":0}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"subscriptions":{"s":{"msgBacklog":%d,"unackedMessages":%d,"msgDelayed":%d,`+
			`"filterRejectedMsgCount":%d}}}`, backlog, leased, delayed, passed)
	}))
	defer server.Close()
	c, err := client.New(client.Config{BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	more := passingOver(t.Context(), c.Topic("t").Subscription("s"))
	for _, step := range []struct {
		name                             string
		filter                           string
		backlog, leased, delayed, passed int64
		want                             bool
	}{
		{"first question", "x > 1", 10, 0, 0, 0, true},
		{"no progress yet", "x > 1", 10, 0, 0, 0, true},
		{"progress", "x > 1", 5, 5, 0, 5, true},
		{"the rest is evaluated", "x > 1", 5, 5, 0, 5, true},
		{"the rest is delayed", "x > 1", 5, 0, 5, 5, false},
		{"nothing is left", "x > 1", 0, 0, 0, 10, false},
		{"no filter", "", 10, 0, 0, 20, false},
	} {
		filter, backlog, leased, delayed, passed = step.filter, step.backlog, step.leased, step.delayed, step.passed
		if got := more(); got != step.want {
			t.Errorf("%s: got %t, want %t", step.name, got, step.want)
		}
	}
}
