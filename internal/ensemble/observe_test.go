package ensemble_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"freshet/internal/ensemble"
)

// awaitObservation waits until a member's observation is as wanted. It asks all members for their status,
// which makes them observe now.
func awaitObservation(t *testing.T, all map[string]*ensemble.Member, member, what string,
	is func(*ensemble.Observation) bool,
) *ensemble.Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		for _, m := range all {
			_, _ = m.Status(ctx)
		}
		observed := all[member].Observation()
		if observed != nil && is(observed) {
			return observed
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("got %+v, want %s", observed, what)
		}
	}
}

// TestObservation checks that a member sees the damage, the files in quarantine and the failing
// clusters of another member, in its observation, its status and its metrics.
func TestObservation(t *testing.T) {
	t.Parallel()
	members, client := openMembers(t, "a", "b"), openEtcd(t)
	a, b := members["a"], members["b"]
	for _, m := range []*ensemble.Member{a, b} {
		join(t, m, client)
		m.FinishLoading()
		m.SetReady(t.Context(), true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.Observe(ctx)
		}()
		t.Cleanup(func() {
			cancel()
			<-ended
		})
	}
	awaitObservation(t, members, "a", "a report of b without damage", func(o *ensemble.Observation) bool {
		return o.Members["b"] != nil && o.Degraded() == nil
	})
	b.Integrity().Verified("journal u1/catalogue")
	b.Integrity().Damaged("shard u1/3", "/data/000007.sst", errors.New("block 3: checksum mismatch"))
	b.SetClusterProblems(func() map[string]string { return map[string]string{"u1": "table is damaged"} })
	b.Integrity().Compared("shard u1/4", time.Time{}, "copies of a and b differ")
	allProblems := func(o *ensemble.Observation) bool { return len(o.Degraded()) == 3 }
	observed := awaitObservation(t, members, "a", "damage, a difference and a failing cluster of b", allProblems)
	if why := observed.Failing["u1"]["b"]; why != "table is damaged" {
		t.Errorf("failing cluster: got %q, want the problem that b reported", why)
	}
	for _, note := range observed.Degraded() {
		if strings.Contains(note, "sst") || strings.Contains(note, "u1") {
			t.Errorf("note %q names a file or a cluster, but health pages are public", note)
		}
	}
	status, err := a.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := status.Members[1].Problem; !strings.Contains(got, "shard u1/3 is damaged") ||
		!strings.Contains(got, "checksum mismatch") {
		t.Errorf("problem of b: got %q, want the damaged part", got)
	}
	awaitObservation(t, members, "b", "its own damage", allProblems)
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.Collector())
	const want = `# HELP freshet_ensemble_member_live Whether a member has its lease, as this member sees it: 1 or 0.
# TYPE freshet_ensemble_member_live gauge
freshet_ensemble_member_live{member="a"} 1
freshet_ensemble_member_live{member="b"} 1
freshet_ensemble_member_live{member="c"} 0
# HELP freshet_ensemble_clock_difference_seconds How far the clocks of the members differ; 0 up to a second.
# TYPE freshet_ensemble_clock_difference_seconds gauge
freshet_ensemble_clock_difference_seconds 0
# HELP freshet_integrity_damaged_parts Damaged parts of this member's files that are not replaced yet.
# TYPE freshet_integrity_damaged_parts gauge
freshet_integrity_damaged_parts 1
# HELP freshet_integrity_damages_total Times that damage was found in this member's files.
# TYPE freshet_integrity_damages_total counter
freshet_integrity_damages_total 1
# HELP freshet_integrity_differing_parts Parts of this member that differ from another copy, without a majority.
# TYPE freshet_integrity_differing_parts gauge
freshet_integrity_differing_parts 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "freshet_integrity_damaged_parts",
		"freshet_integrity_damages_total", "freshet_integrity_differing_parts", "freshet_ensemble_member_live",
		"freshet_ensemble_clock_difference_seconds"); err != nil {
		t.Error(err)
	}
	b.Integrity().Healed("shard u1/3")
	b.Integrity().Compared("shard u1/4", time.Now(), "")
	b.SetClusterProblems(func() map[string]string { return nil })
	awaitObservation(t, members, "a", "no problem after healing", func(o *ensemble.Observation) bool {
		return o.Degraded() == nil
	})
}
