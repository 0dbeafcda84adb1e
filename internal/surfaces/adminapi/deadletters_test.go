package adminapi_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/test/tally"
)

// TestAttackDeadLetterTopic: a caller that may only consume cannot use a dead-letter
// topic to write to other topics.
func TestAttackDeadLetterTopic(t *testing.T) {
	t.Parallel()
	var attempts, successes atomic.Int64
	t.Cleanup(func() {
		tally.Attack(t, "choosing a dead-letter topic without produce and create there", int(attempts.Load()),
			int(successes.Load()))
	})
	const path = "/admin/v2/persistent/public/default/"
	targets := map[string]struct {
		named  string // deadLetterTopic; "" for the default
		topic  string
		exists bool
	}{
		"named and existing": {"vault", "vault", true},
		"named by full name": {"persistent://public/default/vault", "vault", true},
		"named and new":      {"fresh", "fresh", false},
		"the default":        {"", "mine-own-DLQ", false},
	}
	variants := map[string]func(w *harness, target string) int{
		"creation": func(w *harness, target string) int {
			return w.Call("PUT", path+"mine/subscription/own",
				fmt.Sprintf(`{"deadLetterPolicy":{"maxRedeliverCount":0,"deadLetterTopic":%q}}`, target)).Status
		},
		"creation by properties": func(w *harness, target string) int {
			return w.Call("PUT", path+"mine/subscription/own",
				fmt.Sprintf(`{"properties":{"maxRedeliverCount":"0","deadLetterTopic":%q}}`, target)).Status
		},
		"creation on a partition": func(w *harness, target string) int {
			return w.Call("PUT", path+"mine-partition-0/subscription/own",
				fmt.Sprintf(`{"deadLetterPolicy":{"maxRedeliverCount":0,"deadLetterTopic":%q}}`, target)).Status
		},
		"properties": func(w *harness, target string) int {
			w.Call("PUT", path+"mine/subscription/own", "").WantStatus(204)
			return w.Call("PUT", path+"mine/subscription/own/properties",
				fmt.Sprintf(`{"maxRedeliverCount":"0","deadLetterTopic":%q}`, target)).Status
		},
	}
	for variant, choose := range variants {
		for name, target := range targets {
			for _, roles := range []int{0, 1, 2} { // consume only; plus produce there; plus create there
				want := 403
				if roles == 2 || roles == 1 && target.exists {
					want = 204
				}
				t.Run(fmt.Sprintf("%s, %s, %d roles there", variant, name, roles), func(t *testing.T) {
					t.Parallel()
					w := newHarness(t, messaging.Options{})
					w.CreateTopic("mine", 1)
					w.CreateTopic("vault", 0)
					w.Bind("reader", "topic-consumer",
						access.Restriction{Tenant: "public", Namespace: "default", Topic: "allPartition('mine')"})
					for _, role := range []string{"topic-producer", "topic-owner"}[:roles] {
						w.Bind("reader", role,
							access.Restriction{Tenant: "public", Namespace: "default", Topic: target.topic})
					}
					reader := w.as(w.Account("reader"))
					got := choose(reader, target.named)
					if want == 403 {
						attempts.Add(1)
						if got/100 == 2 {
							successes.Add(1)
						}
					}
					if got != want {
						t.Fatalf("got status %d, want %d", got, want)
					}
					if want == 204 {
						return
					}
					if r := w.Log.Last(); r.Decision != audit.Denied || r.Status != 403 {
						t.Errorf("audit record: got %+v, want a denial with 403", r)
					}
					if !target.exists {
						w.Call("GET", path+target.topic+"/stats", "").WantStatus(404) // the topic was not created
					}
				})
			}
		}
	}
}
