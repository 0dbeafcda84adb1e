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

// TestAttackFloodOfDenials: a flood of denials, of unauthenticated callers or of one
// account, does not rotate away the records of other callers, and its size is recorded.
func TestAttackFloodOfDenials(t *testing.T) {
	t.Parallel()
	const flood = 30_000
	path := filepath.Join(t.TempDir(), "audit.log")
	trail, err := audit.OpenTrail(audit.Options{Path: path, MaxBytes: 200_000, MaxRotated: 2})
	if err != nil {
		t.Fatal(err)
	}
	trail.Record(sample)
	for i := range flood {
		trail.Record(audit.Record{
			Surface: "token", Verb: "create", Decision: audit.Denied, Status: 401,
			Source: fmt.Sprint("192.0.2.", i%200),
		})
		// A 401 with the client id of an account does not come from that account.
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
		t.Errorf("recorded or counted %d denials, want %d", counted, 3*flood)
	}
	if got := trail.Stats(); got.Suppressed < 2*flood || got.Dropped > 0 {
		t.Errorf("got stats %+v, want most suppressed and none dropped", got)
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, filepath.Join(filepath.Dir(path), "audit-failed.log")} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, error %v, want a file with mode 0600", name, info, err)
		}
	}
	tally.Attack(t, "rotating records out of the audit trail", 3*flood, successes)
}
