package simulation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is a fault of the product that the simulation must find. It replaces a text that occurs once
// in a file.
type mutant struct{ name, file, was, is string }

var mutants = []mutant{
	{
		"an owner does not check the epoch of messages that it did not write",
		"internal/ensemble/replicated/resolve.go",
		"case err == nil && (r.epoch > e.epoch || e.isEpoch()):", "case err == nil && e.isEpoch():",
	},
	{
		"a standby does not verify sums", "internal/ensemble/replicated/follow.go",
		"case r.sumAfter(f.last.sum) != r.sum:", "case false:",
	},
	{
		"an append is acknowledged before a majority has it", "internal/ensemble/replicated/writer.go",
		"	after, err := p.wait()\n	if err != nil {",
		"	p.w.mu.Lock()\n	after, err := p.e.after, p.w.err\n	after.seq = p.e.seq\n	p.w.mu.Unlock()\n" +
			"	if err != nil {",
	},
	{
		"a copy is promoted before it has read the log", "internal/ensemble/replicated/follow.go",
		"	f.end.Store(state.LastSeq)\n	if state",
		"	f.end.Store(state.LastSeq)\n	f.seq = state.LastSeq\n	if state",
	},
	{
		"a new owner does not compare the log with what was acknowledged", "internal/ensemble/replicated/marks.go",
		"s.compareMarks(ctx, f, marks.of(f.st.id))", "s.compareMarks(ctx, f, nil)",
	},
	{
		"a damaged copy is not replaced", "internal/ensemble/replicated/run.go",
		"		if s.noticeDamage(err) {", "		if false && s.noticeDamage(err) {",
	},
	{
		"a lost journal is rebuilt without ending its old stream", "internal/ensemble/journal/heal.go",
		"		if !fenced {\n			if err := j.publishFence(ctx);",
		"		if false {\n			if err := j.publishFence(ctx);",
	},
	{
		"a commit of offsets is acknowledged before it is durable", "internal/broker/groups/offsets.go",
		"	return s.updateContext(ctx, func(st *state) ([][]byte, error) {\n" +
			"		if _, ok := st.groups.Get(key.path());",
		"	early := func(ctx context.Context, decide func(*state) ([][]byte, error)) error {\n" +
			"		go func() { _ = s.updateContext(ctx, decide) }()\n		return nil\n	}\n" +
			"	return early(ctx, func(st *state) ([][]byte, error) {\n		if _, ok := st.groups.Get(key.path());",
	},
	{
		"a partition is assigned before its owner has revoked it", "internal/broker/groups/reconcile.go",
		"return !held || holder == m.id", `return !held || holder != ""`,
	},
}

// TestMutants checks that the simulation finds each mutant. It needs FRESHET_TEST_MUTANTS=1, because it
// compiles and runs the simulation for each of them.
func TestMutants(t *testing.T) {
	if os.Getenv("FRESHET_TEST_MUTANTS") == "" {
		t.Skip("set FRESHET_TEST_MUTANTS=1, or use make simulate-mutants")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			path := filepath.Join(root, m.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), m.was); n != 1 {
				t.Fatalf("got %d places with %q in %s, want 1; change the mutant with the code", n, m.was, m.file)
			}
			dir := t.TempDir()
			changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
			description, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
			if err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string]string{
				changed: strings.Replace(string(text), m.was, m.is, 1), overlay: string(description),
			} {
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-count=1", "-failfast",
				"-timeout=20m", "-run", "^TestSimulation$", ".")
			command.Env = append(os.Environ(), "FRESHET_SEEDS=100")
			out, err := command.CombinedOutput()
			if err == nil {
				t.Fatalf("the simulation does not find this mutant in 100 seeds: %s", out)
			}
			if !strings.Contains(string(out), "violations:") {
				t.Fatalf("got another failure than violations: %s", out)
			}
			t.Logf("found: %.300s", out[max(0, strings.Index(string(out), "seed ")):])
		})
	}
}
