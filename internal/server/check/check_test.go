package check

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/identity"
	"freshet/internal/ops/datadir"
)

// results implements Report.
type results struct{ intact, damaged map[string]string }

func (r results) Part(name, contents string) { r.intact[name] = contents }
func (r results) Damaged(name, problem, remedy string) {
	r.damaged[name] = problem + "; " + remedy
}

func (r results) Progress(string, int64, int64) {}

// TestDirectory checks a directory without stores. test/e2e checks those of a server.
func TestDirectory(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	cfg.Etcd.Endpoints = []string{"http://etcd.example:2379"}
	if _, err := identity.OpenSealer(cfg.EncryptionKeyFile()); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(cfg.Path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(damaged ...string) results {
		t.Helper()
		r := results{map[string]string{}, map[string]string{}}
		if err := Directory(t.Context(), cfg, r); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(r.damaged)); !slices.Equal(got, damaged) {
			t.Errorf("damaged parts: got %v, want %v", r.damaged, damaged)
		}
		return r
	}
	write("audit.log", "{}\n{}\n{") // the last line is incomplete after a crash
	if got := check().intact["audit.log"]; got != "2 audit records" {
		t.Errorf("audit log: got %q, want 2 audit records", got)
	}
	write("FORMAT", "damaged")
	write("admin.json", "{")
	write("admin.token", "\n")
	write("audit.log", "{}\nnonsense\n")
	write("encryption.key", "")
	problems := check("FORMAT", "admin.json", "admin.token", "audit.log", "encryption.key").damaged
	if !strings.Contains(problems["audit.log"], "1 of 2 lines") {
		t.Errorf("audit log: got %q, want 1 of 2 lines", problems["audit.log"])
	}
}

func TestDirectoryThatCannotBeChecked(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	running, err := datadir.Acquire(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Release() }() // the test is over
	none := results{map[string]string{}, map[string]string{}}
	if err := Directory(t.Context(), cfg, none); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("directory of a running server: got %v, want an error", err)
	}
	cfg.DataDir = cfg.Path("none")
	if err := Directory(t.Context(), cfg, none); errs.KindOf(err) != errs.NotFound {
		t.Errorf("directory that does not exist: got %v, want an error of kind not found", err)
	}
}
