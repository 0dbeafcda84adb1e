package ensemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"freshet/internal/dataplane/ensemble"
	"freshet/internal/dataplane/provision"
	"freshet/test/poll"
)

// removeJournals deletes the streams of a cluster's journals.
func (w *testEnsemble) removeJournals(uid string) {
	w.t.Helper()
	js, err := natsjs.New(w.nats.Connect(0))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for name := range js.StreamNames(ctx).Name() {
		if strings.HasPrefix(name, "J_"+uid+"_") {
			if err := js.DeleteStream(ctx, name); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// TestLostJournals removes the streams of a cluster's journals. They are rebuilt when the members start
// again. When a member is missing that had more, the cluster is not ready and says so, until an operator
// accepts the loss.
func TestLostJournals(t *testing.T) {
	t.Parallel()
	w := newTestEnsemble(t, "a", "b", "c")
	if err := w.members["a"].Provision(t.Context(), spec("u"), ignore); err != nil {
		t.Fatal(err)
	}
	at := ensemble.ClusterName{Organization: "acme", Cluster: "u"}
	journals := func() []ensemble.JournalReport {
		list, err := w.members["a"].Journals(t.Context(), at, "")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	copied := func() bool {
		list := journals()
		for _, j := range list {
			for _, m := range j.Members {
				if m.Missing || m.Sum == "" || m.Position < j.Needed {
					return false
				}
			}
		}
		return len(list) > 0
	}
	poll60(w, "copies of all journals", copied)
	for _, name := range w.names {
		w.stop(name)
	}
	w.removeJournals("u")
	for _, name := range w.names {
		w.start(name)
	}
	provisioned := func() bool { return w.members["a"].Provision(t.Context(), spec("u"), ignore) == nil }
	poll60(w, "the cluster on a", provisioned)
	poll60(w, "copies of the rebuilt journals", copied)

	name := journals()[0].Name
	key := "/freshet/shards/u/journal/" + name + "/members/c"
	w.stop("b")
	w.stop("c")
	// As if c had written more than the others have.
	found, err := w.members["a"].client.Get(t.Context(), key)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("position of c: got %v, error %v", found, err)
	}
	var position map[string]any
	if err := json.Unmarshal(found.Kvs[0].Value, &position); err != nil {
		t.Fatal(err)
	}
	position["position"] = 1000
	text, err := json.Marshal(position)
	if err == nil {
		_, err = w.members["a"].client.Put(t.Context(), key, string(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.stop("a")
	w.removeJournals("u")
	w.start("b")
	w.start("a")
	var lost *provision.JournalLost
	poll60(w, "a lost journal in the status", func() bool {
		err := w.members["a"].Provision(t.Context(), spec("u"), ignore)
		return errors.As(err, &lost) && strings.Contains(lost.Problem, "freshet ensemble repair acme/u")
	})
	for _, j := range journals() {
		if j.Name == name {
			if j.Lost == "" || j.Needed != 1000 || j.From == "" {
				t.Fatalf("got %+v, want a lost journal that can continue from a copy", j)
			}
			if _, err := w.members["a"].AcceptJournalLoss(t.Context(), at, name, j.From, j.Token); err != nil {
				t.Fatal(err)
			}
		}
	}
	poll60(w, "the cluster after the loss was accepted", provisioned)
}

func poll60(w *testEnsemble, what string, is func() bool) {
	w.t.Helper()
	poll.Until(w.t, 2*time.Minute, what, is)
}
