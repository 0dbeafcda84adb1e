package chaos

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/ensemble/load"
)

// TestUpgrade upgrades the members of an ensemble of the previous version to this build, one after another, under
// load. Nothing may be lost, and no call of a client that retries once may fail. FRESHET_PREVIOUS is the binary of the
// previous version; make test-upgrade builds it.
func TestUpgrade(t *testing.T) {
	previous := os.Getenv("FRESHET_PREVIOUS")
	if previous == "" {
		t.Skip("NOT TESTED: an upgrade from the previous version; make test-upgrade runs it")
	}
	n := seed(t)
	g := newEnsemble(t, EnsembleOptions{Binary: previous}, n)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	before := versionOf(ctx, t, g.Members[0])
	r := newRetrier(ctx, t, g)
	stop := r.load(ctx)
	run := &Run{
		Members: g.Members, Load: load.Options{Token: g.Members[0].Token(), Pause: 60 * time.Millisecond},
		Plan: Plan{Seed: n, Quiet: 6 * time.Second}, Log: testLog{t}, DrainTimeout: 90 * time.Second,
		History: filepath.Join(os.TempDir(), "freshet-history-upgrade.jsonl"),
	}
	for _, m := range g.Members {
		run.Faults = append(run.Faults, Upgrade(m, binary))
	}
	result, err := run.Do(ctx)
	stop()
	if result != nil {
		report(t, result)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.report()
	after := versionOf(ctx, t, g.Members[0])
	t.Logf("upgraded from %s to %s", before, after)
	if before == after {
		t.Errorf("version before and after the upgrade: got %s twice; FRESHET_PREVIOUS must be another build", before)
	}
	for _, m := range g.Members[1:] {
		if got := versionOf(ctx, t, m); got != after {
			t.Errorf("version of %s after the upgrade: got %s, want %s", m.Name, got, after)
		}
	}
}

// versionOf returns the line of a member's metrics with its version and commit.
func versionOf(ctx context.Context, t *testing.T, m *Member) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Ops()+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "freshet_build_info{") {
			return lines.Text()
		}
	}
	t.Fatalf("metrics of %s have no freshet_build_info", m.Name)
	return ""
}
