package members_test

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"freshet/test/tally"
)

// TestFaultLastStops stops the last running member of an ensemble while it waits for a
// paused member to confirm a revoked key. As no member is left that could confirm it, the
// member exits cleanly.
func TestFaultLastStops(t *testing.T) {
	g := start(t)
	a, b, c := g.Members[0], g.Members[1], g.Members[2]
	must(t, a, http.MethodPost, cloud+"serviceaccounts", account("robot"))
	key(t, a, "one")
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	calling, hangUp := context.WithCancel(t.Context())
	called := make(chan struct{})
	t.Cleanup(func() {
		hangUp()
		<-called
		if err := c.Resume(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		defer close(called)
		for calling.Err() == nil { // the paused member may be etcd's leader
			status, _ := call(calling, b, b.Token(), http.MethodPatch, cloud+"apikeys/one", `{"spec":{"revoke":true}}`)
			if status == http.StatusOK {
				return
			}
		}
	}()
	await(t, "the revocation is stored", 20*time.Second, func() bool {
		_, content := call(t.Context(), a, a.Token(), http.MethodGet, cloud+"apikeys/one", "")
		return bytes.Contains(content, []byte(`"revoke":true`))
	})
	a.Kill()
	began := time.Now()
	if err := b.Stop(time.Minute); err != nil {
		t.Errorf("stopping the last member: got %v, want a clean exit\n%s", err, b.Log())
	}
	tally.Fault{
		Name: "last member stopped while another is paused", Injected: 1, Checked: 1,
		Recovery: time.Since(began),
	}.Record(t)
}
