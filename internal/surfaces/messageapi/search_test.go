package messageapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/test/tally"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 2)
	for i := range 6 {
		w.Call("POST", topic+"/message", fmt.Sprintf(`{"total":%d}`, i)).WantStatus(201)
	}
	query := func(filter, more string) string { return topic + "/search?filter=" + url.QueryEscape(filter) + more }
	got := w.Call("GET", query(`payload.total > 3`, "&encoding=json"), "").WantStatus(200).Body
	if strings.Count(got, "event: message\n") != 2 || !strings.Contains(got, `"payload":{"total":5}`) ||
		!strings.Contains(got, `event: end`) || !strings.Contains(got, `"scanned":6,"matched":2,"failed":0,"total":6,`+
		`"percent":100,"cursor":"`) || !strings.Contains(got, `"reason":"end"`) {
		t.Errorf("got %s, want two messages and the end", got)
	}
	got = w.Call("GET", query(`true`, "&limit=1"), "").WantStatus(200).Body
	_, cursor, _ := strings.Cut(got, `"cursor":"`)
	cursor, _, _ = strings.Cut(cursor, `"`)
	if strings.Count(got, "event: message\n") != 1 || !strings.Contains(got, `"reason":"limit"`) {
		t.Errorf("with a limit: got %s, want one message", got)
	}
	got = w.Call("GET", query(`true`, "&cursor="+cursor), "").WantStatus(200).Body
	if strings.Count(got, "event: message\n") != 5 {
		t.Errorf("after the cursor: got %s, want five messages", got)
	}
	got = w.Call("GET", query(`payload.other`, "&partitions=0,1"), "").WantStatus(200).Body
	if !strings.Contains(got, `"failed":6,"failure":"no such key: other"`) {
		t.Errorf("with a missing field: got %s, want six failures", got)
	}
	for name, path := range map[string]string{
		"filter is missing":       topic + "/search",
		"not a valid expression":  query("payload.total >", ""),
		"its type is int":         query("size", ""),
		"limit must be":           query("true", "&limit=0"),
		"partitions must be":      query("true", "&partitions=a"),
		"from must be an integer": query("true", "&from=yesterday"),
		"cursor is not valid":     query("true", "&cursor=abc"),
		"encoding":                query("true", "&encoding=xml"),
	} {
		if r := w.Call("GET", path, "").WantStatus(400); !strings.Contains(r.Body, name) {
			t.Errorf("%s: got %s, want %q", path, r.Body, name)
		}
	}
	w.Call("GET", query("true", "&partitions=2"), "").WantStatus(404)
	w.Call("GET", strings.Replace(query("true", ""), "/t/", "/missing/", 1), "").WantStatus(404)
}

// TestAttackSearchWithoutPermission searches a topic with credentials that may not consume it: none of
// the responses may show whether the expression matches.
func TestAttackSearchWithoutPermission(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	w.Call("POST", topic+"/message", `{"secret":1}`).WantStatus(201)
	attempts, successes := 0, 0
	for _, token := range []string{"", "garbage", w.Account("nobody")} {
		for _, filter := range []string{`payload.secret == 1`, `payload.secret ==`, `true`} {
			for _, path := range []string{"/search?filter=" + url.QueryEscape(filter), "/search/ticket"} {
				method := "GET"
				if strings.HasSuffix(path, "ticket") {
					method = "POST"
				}
				attempts++
				if r := w.as(token).Call(method, topic+path, ""); r.Status != 401 {
					successes++
					t.Errorf("%s %s: got %d %s, want 401", method, path, r.Status, r.Body)
				}
			}
		}
	}
	tally.Attack(t, "search without permission to consume", attempts, successes)
}
