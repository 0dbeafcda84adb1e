// Package tally records the results of tests that attack the system or inject faults.
// `make test-attack` and `make test-faults` run those tests, in all packages, by their
// names (TestAttack…, TestFault…); hack/tally.sh collects the logged lines in one table.
package tally

import (
	"os"
	"testing"
	"time"
)

// Long reports whether tests should run for minutes instead of seconds. The two make
// targets set FRESHET_LONG; make test does not.
func Long() bool { return os.Getenv("FRESHET_LONG") != "" }

// Attack records how often something forbidden was attempted and how often it succeeded.
// The test fails if an attempt succeeded or if nothing was attempted.
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

// A Fault is a fault that was injected into a running system, and its damage.
type Fault struct {
	Name     string
	Injected int           // how often
	Checked  int           // acknowledged operations whose effect was checked afterwards
	Lost     int           // of these, missing
	Foreign  int           // messages delivered under the name of another topic or partition
	Wrong    int           // responses that were neither correct nor an error
	Recovery time.Duration // longest time from the end of a fault to the first correct response
}

// Record logs a fault. The test fails if anything was lost, foreign or wrong, or if
// nothing was injected or checked.
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
