// Package tally writes down what tests that attack the system, or break
// something under it, tried and what came of it. `make test-attack` and
// `make test-faults` run those tests by their names (TestAttack…, TestFault…),
// wherever they stand, and hack/tally.sh makes one table of the lines written
// here.
package tally

import (
	"os"
	"testing"
	"time"
)

// Long says whether tests should try for minutes what they otherwise try for
// seconds: the two make targets ask for that, the whole suite does not.
func Long() bool { return os.Getenv("FRESHET_LONG") != "" }

// Attack records how often something forbidden was attempted and how often it
// succeeded. The test fails if it ever did, or if nothing was attempted.
func Attack(t testing.TB, name string, attempts, successes int) {
	t.Helper()
	t.Logf("tally attack | %s | %d | %d", name, attempts, successes)
	if attempts == 0 {
		t.Errorf("%s: got no attempt, want at least one", name)
	}
	if successes > 0 {
		t.Errorf("%s: got %d successes in %d attempts, want none", name, successes, attempts)
	}
}

// A Fault is something that was broken under a running system, and the damage.
type Fault struct {
	Name     string
	Injected int           // how often
	Checked  int           // acknowledged operations whose effect was looked for afterwards
	Lost     int           // of these, not found
	Foreign  int           // messages that were delivered under the name of another topic or partition
	Wrong    int           // answers that were neither right nor an honest error
	Recovery time.Duration // the longest time from the end of the fault to the first right answer
}

// Record writes a fault down. The test fails if anything was lost, foreign or wrong,
// or if nothing was injected or checked.
func (f Fault) Record(t testing.TB) {
	t.Helper()
	t.Logf("tally fault | %s | %d | %d | %d | %d | %d | %s",
		f.Name, f.Injected, f.Checked, f.Lost, f.Foreign, f.Wrong, f.Recovery.Round(time.Millisecond))
	if f.Injected == 0 || f.Checked == 0 {
		t.Errorf("%s: got %d injected and %d checked, want at least one of each", f.Name, f.Injected, f.Checked)
	}
	if f.Lost > 0 || f.Foreign > 0 || f.Wrong > 0 {
		t.Errorf("%s: got %d lost, %d foreign and %d wrong, want none", f.Name, f.Lost, f.Foreign, f.Wrong)
	}
}
