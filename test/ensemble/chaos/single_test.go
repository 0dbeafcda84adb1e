package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/ensemble/history"
	"freshet/test/ensemble/load"
	"freshet/test/tally"
	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) { testserver.Main(m, &binary) }

// testLog writes lines to a test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Logf("%s", strings.TrimRight(string(text), "\n"))
	return len(text), nil
}

// report logs the result and fails the test if a guarantee was violated.
func report(t *testing.T, r *Result) {
	t.Helper()
	var text strings.Builder
	if err := r.Print(&text); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", &text)
	if n := len(r.Violations); n > 0 {
		t.Errorf("violations: got %d, want none; repeat the run with FRESHET_SEED=%d", n, r.Seed)
	}
}

// TestFaultSingle kills, pauses and restarts a single server under all kinds of clients,
// and checks that no guarantee is violated.
func TestFaultSingle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := newMember(t.Context(), "single", binary, dir, testserver.Options{Kafka: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	all := func() []*Member { return []*Member{m} }
	run := &Run{
		Members: all(), Load: load.Options{Token: m.Token(), Topics: 3},
		Faults: []Fault{
			Kill("kill -9", 100*time.Millisecond, all),
			Pause("SIGSTOP", time.Second, all),
			Stop("SIGTERM", 100*time.Millisecond, all),
			Kill("kill -9", 100*time.Millisecond, all),
		},
		Plan: Plan{Seed: seed(t), Quiet: 600 * time.Millisecond}, Log: testLog{t}, DrainTimeout: 30 * time.Second,
		History: filepath.Join(os.TempDir(), "freshet-history-single.jsonl"),
	}
	if tally.Long() {
		run.Plan.Length = time.Minute
	}
	result, err := run.Do(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, m.Log())
	}
	report(t, result)
	var recovery time.Duration
	if len(result.Gaps) > 0 {
		recovery = result.Gaps[0].Length
	}
	tally.Fault{
		Name: "kill -9, SIGSTOP and SIGTERM under all kinds of clients", Injected: len(result.Faults),
		Checked: result.Total(history.OK),
		Lost:    result.Count(history.Lost), Foreign: result.Count(history.Foreign),
		Wrong: result.Count(history.Wrong) + result.Count(history.Duplicated), Recovery: recovery,
	}.Record(t)
}
