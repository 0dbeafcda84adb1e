package ensemble

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"freshet/internal/broker/history"
	"freshet/internal/ensemble/membership"
)

// historyMembers are members a, which asks, and b; live are those with a lease.
type historyMembers struct {
	networkMembers
	live []string
}

func (historyMembers) Self() string    { return "a" }
func (historyMembers) Names() []string { return []string{"a", "b"} }

func (m historyMembers) Live() (list []membership.Record) {
	for _, name := range m.live {
		list = append(list, membership.Record{Name: name})
	}
	return list
}

// TestHistoryOfAllMembers asks a member that answers, one that fails, and one that is away. The answer says
// when a part is missing.
func TestHistoryOfAllMembers(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	recorder := history.New(history.Options{Logger: quiet})
	b := (&Router{History: recorder, Logger: quiet}).HistoryHandler()
	unknown := http.HandlerFunc(http.NotFound) // a member of an earlier version
	q, err := history.NewQuery(history.Key{Kind: history.Cluster, Cluster: "u"}, "24h")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		handler    http.Handler
		live       []string
		incomplete bool
	}{
		"answers": {b, []string{"a", "b"}, false},
		"fails":   {unknown, []string{"a", "b"}, true},
		"away":    {b, []string{"a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			router := &Router{
				Members: historyMembers{networkMembers{Network: otherMember(t, c.handler)}, c.live}, Logger: quiet,
			}
			answer := recorder.Answer(q)
			router.addHistory(t.Context(), q, answer)
			if answer.Incomplete != c.incomplete || len(answer.Backlog) != 144 {
				t.Errorf("got %+v, want incomplete %v", answer, c.incomplete)
			}
		})
	}
}

// TestHistoryQueryOfAnotherVersion checks that a query that this version cannot answer is rejected.
func TestHistoryQueryOfAnotherVersion(t *testing.T) {
	t.Parallel()
	handler := (&Router{History: history.New(history.Options{Logger: slog.New(slog.DiscardHandler)})}).HistoryHandler()
	until := time.Now().Format(time.RFC3339)
	for body, want := range map[string]int{
		`{"kind":0,"cluster":"u","range":"1h","until":"` + until + `"}`: http.StatusOK,
		`{"kind":0,"cluster":"u","range":"7d","until":"` + until + `"}`: http.StatusBadRequest,
		`{"kind":9,"cluster":"u","range":"1h","until":"` + until + `"}`: http.StatusBadRequest,
		`{`: http.StatusBadRequest,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, HistoryPath, strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", body, w.Code, want)
		}
	}
}
