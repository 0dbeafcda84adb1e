package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"freshet/internal/ops/audit"
	"freshet/test/tally"
)

// TestAttackFloodOfDenials: neither strangers nor one account push the record of
// somebody else's deed out of the trail, and how many they were is told.
func TestAttackFloodOfDenials(t *testing.T) {
	t.Parallel()
	const flood = 30_000
	path := filepath.Join(t.TempDir(), "audit.log")
	trail, err := audit.OpenTrail(audit.Options{Path: path, MaxBytes: 200_000, Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	trail.Record(sample)
	for i := range flood {
		trail.Record(audit.Record{
			Surface: "token", Verb: "create", Decision: audit.Denied, Status: 401,
			Source: fmt.Sprint("192.0.2.", i%200),
		})
		// Whose client id was tried is not who tried it.
		trail.Record(audit.Record{
			Surface: "token", Verb: "create", Decision: audit.Denied, Status: 401,
			Principal: "ci@acme.test", Organization: "acme",
		})
		trail.Record(audit.Record{
			Surface: "messages", Verb: "produce", Decision: audit.Denied, Status: 403,
			Principal: "mallory@acme.test", Organization: "acme",
		})
	}
	kept, err := trail.Tail(context.Background(), audit.Query{RequestID: sample.RequestID})
	if err != nil {
		t.Fatal(err)
	}
	successes := 0
	if len(kept) != 1 {
		successes++
	}
	counted := int64(0)
	for _, verb := range []string{"suppress", "create", "produce"} {
		all, err := trail.Tail(context.Background(), audit.Query{Verb: verb, Limit: audit.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.RequestID == "" {
				counted += max(1, r.Count)
			}
		}
	}
	if counted != 3*flood {
		t.Errorf("%d denials are written or counted, want %d", counted, 3*flood)
	}
	if got := trail.Stats(); got.Suppressed < 2*flood || got.Dropped > 0 {
		t.Errorf("stats %+v, want most suppressed and none dropped", got)
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Join(filepath.Dir(path), "audit-failed.log")} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want a file for its owner alone", name, info, err)
		}
	}
	tally.Attack(t, "rotate the audit trail away", 3*flood, successes)
}
