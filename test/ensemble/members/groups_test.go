package members_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestAllConsumerGroups lists the consumer groups at every member. Each member returns all
// groups, whichever members coordinate them; while a coordinator is unreachable the list is
// refused and never incomplete.
func TestAllConsumerGroups(t *testing.T) {
	g := start(t)
	a, c := g.Members[0], g.Members[2]
	run(t, a, "topic", "create", "orders")
	const admin = "/rest-stream/admin/v1/groups"
	for i := range 12 {
		await(t, "a group", time.Minute, func() bool { // owners may still change after the start
			m := g.Members[i%3]
			status, content := call(t.Context(), m, m.Token(), http.MethodPut,
				fmt.Sprintf("%s/g%02d/offsets", admin, i),
				`{"offsets": [{"topic_name": "orders", "position": "earliest"}]}`)
			if status != http.StatusNoContent && status != http.StatusServiceUnavailable {
				t.Fatalf("creating a group: got %d %s, want 204, or 503 while owners change", status, content)
			}
			return status == http.StatusNoContent
		})
	}
	list := func(status int, content []byte) (n int, complete bool) {
		var body struct {
			Data []struct {
				GroupID string `json:"group_id"`
			} `json:"data"`
		}
		if status == http.StatusServiceUnavailable {
			return 0, false
		}
		if status != http.StatusOK {
			t.Fatalf("got %d %s, want a list, or 503 if it would be incomplete", status, content)
		}
		if err := json.Unmarshal(content, &body); err != nil {
			t.Fatal(err)
		}
		for i, each := range body.Data {
			if each.GroupID != fmt.Sprintf("g%02d", i) {
				t.Errorf("got group %q at %d, want all in order: %s", each.GroupID, i, content)
			}
		}
		return len(body.Data), true
	}
	for _, m := range g.Members {
		await(t, "a list", time.Minute, func() bool {
			n, complete := list(call(t.Context(), m, m.Token(), http.MethodGet, admin, ""))
			if complete && n != 12 {
				t.Errorf("got %d groups at member %s, want 12", n, m.Name)
			}
			return complete
		})
	}
	completeStatistics(t, g)
	c.Kill()
	refused := 0
	await(t, "the list without c", 30*time.Second, func() bool {
		n, complete := list(call(t.Context(), a, a.Token(), http.MethodGet, admin, ""))
		if complete && n != 12 {
			t.Errorf("got %d groups while a member was lost, want all or none", n)
		}
		if !complete {
			refused++
		}
		return complete
	})
	t.Logf("refused %d times until another member coordinates", refused)
}

// completeStatistics checks that the statistics of the topic contain all groups that read it,
// at every member, whichever members coordinate the groups and own the topic.
func completeStatistics(t *testing.T, g *ensemble) {
	t.Helper()
	for _, m := range g.Members {
		await(t, "statistics with all groups", 30*time.Second, func() bool {
			var body struct {
				Groups map[string]struct {
					State string `json:"state"`
					Lag   uint64 `json:"lag"`
				} `json:"groups"`
				Incomplete bool `json:"groupsIncomplete"`
			}
			status, content := call(t.Context(), m, m.Token(), http.MethodGet,
				"/admin/v2/persistent/public/default/orders/stats", "")
			if status == http.StatusServiceUnavailable {
				return false
			}
			if err := json.Unmarshal(content, &body); err != nil {
				t.Fatal(err)
			}
			if !body.Incomplete && (len(body.Groups) != 12 || body.Groups["g11"].State != "Empty") {
				t.Fatalf("member %s: got %d groups that read the topic, want 12: %s", m.Name, len(body.Groups), content)
			}
			return !body.Incomplete
		})
	}
}
