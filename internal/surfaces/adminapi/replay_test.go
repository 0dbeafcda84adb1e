package adminapi_test

import (
	"fmt"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/ops/audit"
	"freshet/test/tally"
)

const replayPath = "/admin/v2/persistent/public/default/mine/subscription/own/replay_dead_letters"

// newReplay returns a harness with a subscription and three dead letters {"n":0} to {"n":2}.
func newReplay(t *testing.T) *harness {
	t.Helper()
	w := newHarness(t, messaging.Options{})
	w.CreateTopic("mine", 0)
	w.Call("PUT", "/admin/v2/persistent/public/default/mine/subscription/own",
		`{"deadLetterPolicy":{"maxRedeliverCount":0}}`).WantStatus(204)
	for i := range 3 {
		w.Call("POST", root+"public/default/mine-own-DLQ/message", fmt.Sprintf(`{"n":%d}`, i)).WantStatus(201)
	}
	return w
}

func TestReplay(t *testing.T) {
	t.Parallel()
	w := newReplay(t)
	w.CreateTopic("retry", 0)
	const to = `"to":"persistent://public/default/retry"`
	w.Call("POST", replayPath, `{"filter":"payload.n > 0","dryRun":true,`+to+`}`).WantStatus(200).WantBody(
		`{"scanned":3,"matched":2,"failed":0,"replayed":0}`)
	w.Call("POST", replayPath, `{"filter":"payload.n > 0",`+to+`}`).WantStatus(200).WantBody(
		`{"scanned":3,"matched":2,"failed":0,"replayed":2}`)
	w.Call("POST", replayPath, `{"filter":"payload.other"}`).WantStatus(200).WantBody(
		`{"scanned":1,"matched":0,"failed":1,"failure":"no such key: other","replayed":0}`)
	w.Call("POST", replayPath, "").WantStatus(200).WantBody(`{"scanned":1,"matched":1,"failed":0,"replayed":1}`)
	w.Call("GET", "/admin/v2/persistent/public/default/retry/subscription/s/position/1", "").WantBody(`{"n":1}`)
	w.Call("GET", "/admin/v2/persistent/public/default/mine/subscription/s/position/1", "").WantBody(`{"n":0}`)
	for body, want := range map[string]int{
		`{"filter":"payload.n >"}`: 400,
		`{"limit":0}`:              400,
		`{"limit":1001}`:           400,
		`{"after":"x"}`:            400,
		`{"to":"persistent://public/default/mine-own-DLQ"}`: 400,
		`{"to":"persistent://public/default/absent"}`:       404,
		`{"to":"persistent://only"}`:                        400,
		`{"limit":"many"}`:                                  400,
	} {
		if r := w.Call("POST", replayPath, body); r.Status != want {
			t.Errorf("%s: got %d %s, want %d", body, r.Status, r.Body, want)
		}
	}
	w.Call("PUT", "/admin/v2/persistent/public/default/mine/subscription/plain", "").WantStatus(204)
	w.Call("POST", strings.Replace(replayPath, "/own/", "/plain/", 1), "").WantStatus(412)
	w.Call("POST", strings.Replace(replayPath, "/own/", "/absent/", 1), "").WantStatus(404)
}

// TestAttackReplay replays dead letters without one of the permissions: nothing is sent, and
// the response does not show whether the target exists.
func TestAttackReplay(t *testing.T) {
	t.Parallel()
	attempts, successes := 0, 0
	for _, test := range []struct {
		name   string
		grants map[string]string // topic → permission
		want   int
	}{
		{"nothing", nil, 403},
		{"the topic only", map[string]string{"mine": "consume"}, 403},
		{"no target", map[string]string{"mine": "consume", "mine-own-DLQ": "consume"}, 403},
		{"consume the target", map[string]string{
			"mine": "consume", "mine-own-DLQ": "consume", "vault": "consume",
		}, 403},
		{"not the dead letters", map[string]string{"mine": "consume", "vault": "produce"}, 403},
		{"not the topic", map[string]string{"mine-own-DLQ": "consume", "vault": "produce"}, 403},
		{"all", map[string]string{
			"mine": "consume", "mine-own-DLQ": "consume", "vault": "produce",
		}, 200},
	} {
		w := newReplay(t)
		w.CreateTopic("vault", 0)
		reader := w.as(w.Account("reader"))
		for name, permission := range test.grants {
			w.Call("POST", "/admin/v2/persistent/public/default/"+name+"/permissions/"+w.Principal("reader"),
				`["`+permission+`"]`).WantStatus(204)
		}
		for _, body := range []string{`{"dryRun":true,%s}`, `{%s}`} {
			call := func(to string) (int, string) {
				r := reader.Call("POST", replayPath, fmt.Sprintf(body, `"to":"persistent://public/default/`+to+`"`))
				return r.Status, strings.ReplaceAll(r.Body, to, "TARGET")
			}
			existing, text := call("vault")
			if existing != test.want {
				t.Errorf("%s, %s: got %d %s, want %d", test.name, body, existing, text, test.want)
			}
			if test.want != 403 {
				continue
			}
			if got := w.Log.Last(); got.Decision != audit.Denied {
				t.Errorf("%s: audit record: got %+v, want a denial", test.name, got)
			}
			attempts++
			if existing/100 == 2 {
				successes++
			}
			attempts++
			if missing, same := call("absent"); missing != existing || same != text {
				successes++
				t.Errorf("%s: got %d %s for a missing target and %d %s for an existing one", test.name, missing, same,
					existing, text)
			}
		}
	}
	tally.Attack(t, "replay dead letters without a permission", attempts, successes)
}
