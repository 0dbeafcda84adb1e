package damage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"freshet/test/tally"
	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) {
	if os.Getenv("FRESHET_TEST_CLUSTER") == "" {
		fmt.Println("NOT TESTED: damaged files of an ensemble; make test-ensemble and make test-damage run them")
		return
	}
	testserver.Main(m, &binary)
}

// seed returns FRESHET_SEED, or a random seed.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64N(1_000_000)
	if text := os.Getenv("FRESHET_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FRESHET_SEED: %v", err)
		}
	}
	t.Logf("seed %d", n)
	return n
}

// number returns the value of an environment variable.
func number(t *testing.T, variable string, standard int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// long skips a test that needs more time than make test-ensemble has.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("FRESHET_TEST_DAMAGE") == "" {
		t.Skip("NOT TESTED: takes long; make test-damage, damage-soak and crash-images run it")
	}
}

type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Logf("%s", strings.TrimRight(string(text), "\n"))
	return len(text), nil
}

func newRunner(t *testing.T) *Runner {
	t.Helper()
	n := seed(t)
	logs := filepath.Join(os.TempDir(), "freshet-"+t.Name()+"-"+strconv.FormatUint(n, 10))
	r := New(Options{Binary: binary, Dir: t.TempDir(), Logs: logs, Seed: n, Log: testLog{t}})
	t.Cleanup(func() {
		if err := r.discard(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// report prints the results, writes them to a file, and fails the test if a case failed.
func report(t *testing.T, name string, results []*Result) {
	t.Helper()
	var text strings.Builder
	if err := Print(&text, results); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s", &text)
	path := os.Getenv("DAMAGE_OUT")
	if path == "" {
		path = filepath.Join(os.TempDir(), "freshet-"+t.Name()+".json")
	}
	if err := Write(path, results); err != nil {
		t.Error(err)
	}
	sum := Sum(results)
	t.Logf("%s; results: %s", sum, path)
	if failed := sum.Outcomes[Failed]; failed > 0 {
		t.Errorf("failed cases: got %d of %d, want none; repeat one with DAMAGE_RUN and FRESHET_SEED", failed,
			len(results))
	}
	tally.Fault{
		Name: name, Injected: sum.Injected, Checked: sum.Checked, Lost: sum.Lost, Foreign: sum.Foreign,
		Wrong: sum.Wrong, Recovery: sum.Slowest,
	}.Record(t)
}

// run runs cases on one ensemble as long as none fails.
func run(t *testing.T, cases []Case) []*Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(cases)+2)*10*time.Minute)
	defer cancel()
	r := newRunner(t)
	var results []*Result
	for _, c := range cases {
		result, err := r.Case(ctx, c)
		if result != nil {
			results = append(results, result)
		}
		if err != nil {
			t.Error(err)
			return results
		}
	}
	if end, err := r.Finish(ctx); err != nil {
		t.Error(err)
	} else if end != nil {
		results = append(results, end)
	}
	return results
}

// TestEnsembleDamage is a small part of the matrix for make test-ensemble.
func TestEnsembleDamage(t *testing.T) {
	smoke := regexp.MustCompile(`^(table/flip/stopped|log-block/zero/running|raft-snapshot/cut-half/stopped)$`)
	report(t, "files of a member damaged", run(t, Cases(smoke)))
}

// TestDamageMatrix damages every class of file in every way, at a stopped and at a running member.
// DAMAGE_RUN selects cases.
func TestDamageMatrix(t *testing.T) {
	long(t)
	match, err := regexp.Compile(os.Getenv("DAMAGE_RUN"))
	if err != nil {
		t.Fatalf("DAMAGE_RUN: %v", err)
	}
	cases := Cases(match)
	if len(cases) == 0 {
		t.Skip("no case matches DAMAGE_RUN")
	}
	report(t, "every class of file of a member damaged", run(t, cases))
}

// TestDamageTogether injects two and three faults at once. DAMAGE_RUN selects cases.
func TestDamageTogether(t *testing.T) {
	long(t)
	match, err := regexp.Compile(os.Getenv("DAMAGE_RUN"))
	if err != nil {
		t.Fatalf("DAMAGE_RUN: %v", err)
	}
	r := newRunner(t)
	var results []*Result
	for _, c := range Combinations() {
		if !match.MatchString(c.Name) {
			continue
		}
		result, err := r.Together(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
	}
	if len(results) == 0 {
		t.Skip("no case matches DAMAGE_RUN")
	}
	report(t, "several faults at once", results)
}

// TestDamageSoak damages random files, one after another, on rotating members of one ensemble.
// DAMAGES is their number.
func TestDamageSoak(t *testing.T) {
	long(t)
	r := newRunner(t)
	random := rand.New(rand.NewPCG(r.o.Seed, 4))
	var results []*Result
	for done := 0; done < number(t, "DAMAGES", 200); {
		result, err := r.Case(t.Context(), RandomCase(random))
		if err != nil {
			t.Error(err)
			break
		}
		if result.Outcome == Absent {
			continue
		}
		done++
		results = append(results, result)
	}
	if end, err := r.Finish(t.Context()); err != nil {
		t.Error(err)
	} else if end != nil {
		results = append(results, end)
	}
	if r.started > 1 {
		t.Errorf("ensembles: got %d, want one for all damages", r.started)
	}
	report(t, "damages in a row", results)
}

// TestCrashImages starts all members from images of one instant. CRASH_IMAGES is their number.
func TestCrashImages(t *testing.T) {
	long(t)
	r := newRunner(t)
	var results []*Result
	for i := range number(t, "CRASH_IMAGES", 20) {
		result, err := r.CrashImage(t.Context(), i+1)
		if err != nil {
			t.Error(err)
			break
		}
		results = append(results, result)
	}
	if end, err := r.Finish(t.Context()); err != nil {
		t.Error(err)
	} else if end != nil {
		results = append(results, end)
	}
	report(t, "crash images of all members at one instant", results)
}
