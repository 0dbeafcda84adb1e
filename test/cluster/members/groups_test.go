package members_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// TestAllConsumerGroups lists the consumer groups at every member: each has those of
// all, whoever coordinates them; and while a coordinator cannot be asked there is no
// list that lacks some.
func TestAllConsumerGroups(t *testing.T) {
	g := start(t)
	a, c := g.Members[0], g.Members[2]
	run(t, a, "topic", "create", "orders")
	const admin = "/rest-stream/admin/v1/groups"
	for i := range 12 {
		await(t, "a group", time.Minute, func() bool { // owners may still change after the start
			m := g.Members[i%3]
			status, _ := call(t.Context(), m, m.Token(), http.MethodPut, fmt.Sprintf("%s/g%02d/offsets", admin, i), `{"offsets": [{"topic_name": "orders", "position": "earliest"}]}`)
			return status == http.StatusNoContent
		})
	}
	list := func(status int, answer []byte) (n int, complete bool) {
		var body struct {
			Data []struct {
				GroupID string `json:"group_id"`
			} `json:"data"`
		}
		if status != http.StatusOK {
			return 0, false
		}
		if err := json.Unmarshal(answer, &body); err != nil {
			t.Fatal(err)
		}
		for i, each := range body.Data {
			if each.GroupID != fmt.Sprintf("g%02d", i) {
				t.Errorf("got group %q at %d, want all in order: %s", each.GroupID, i, answer)
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
