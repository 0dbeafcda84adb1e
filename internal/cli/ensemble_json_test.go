package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"freshet/internal/cli/command"
	"freshet/internal/cli/servercmd"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
)

// movingServer is a server whose migration moves one part.
type movingServer struct{ Server }

// Migrate implements servercmd.Server.
func (movingServer) Migrate(_ context.Context, _ string, _ *config.Config, report servercmd.MigrateReport) error {
	report.Step("copying")
	report.Moved("acme/prod", "shard 0", 2, 40, 3, 9, "abc")
	report.Done("a", "a-data", false)
	return nil
}

// decode runs a command line with -o json and decodes its standard output.
func decode(t *testing.T, result any, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Execute(t.Context(), append(args, "-o", "json"),
		Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, movingServer{})
	if code != ExitOK {
		t.Fatalf("%v: exit code %d, %s", args, code, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out.String())
	}
}

// TestEnsembleCommandsPrintJSON runs the commands of ensembles with -o json, which test/cli cannot run with one
// server.
func TestEnsembleCommandsPrintJSON(t *testing.T) {
	dir := t.TempDir()
	group, file := filepath.Join(dir, "group"), filepath.Join(dir, "a.yaml")
	testInitPrintsJSON(t, group)
	var got command.Result
	decode(t, &got, "ensemble", "join", filepath.Join(group, "a.bundle"), "--data-dir", filepath.Join(dir, "data"),
		"--config", file)
	if want := (command.Result{Kind: "member", Name: "a", Action: "joined", File: file}); got != want {
		t.Errorf("join: got %+v, want %+v", got, want)
	}
	got = command.Result{}
	decode(t, &got, "ensemble", "replace", "b", "--group", group, "--only-bundle")
	if got.Name != "b" || got.Action != "replaced" || got.File != filepath.Join(group, "b-new.bundle") {
		t.Errorf("replace: got %+v", got)
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"organization":"acme","cluster":"prod","shard":3,"from":"b","copies":[]}`)
	}))
	t.Cleanup(server.Close)
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FRESHET_SERVER", server.URL)
	t.Setenv("FRESHET_TOKEN_FILE", token)
	got = command.Result{}
	decode(t, &got, "ensemble", "accept-loss", "acme/prod", "3", "--yes")
	if got.Name != "acme/prod/3" || got.Action != "accepted loss" {
		t.Errorf("accept-loss: got %+v", got)
	}
}

// testInitPrintsJSON creates an ensemble in a directory, and checks that the result names the files.
func testInitPrintsJSON(t *testing.T, group string) {
	t.Helper()
	type memberFile struct{ Name, File string }
	var got struct {
		command.Result
		Members []memberFile
	}
	decode(t, &got, "ensemble", "init", "--base-url", "https://freshet.example.com", "--out", group,
		"a=10.0.0.1", "b=10.0.0.2", "c=10.0.0.3")
	ensemble, err := bundle.ReadEnsemble(filepath.Join(group, bundle.EnsembleFile))
	if err != nil {
		t.Fatal(err)
	}
	result := command.Result{Kind: "ensemble", Name: ensemble.ID, Action: "created", File: group}
	if got.Result != result {
		t.Errorf("init: got %+v, want %+v", got.Result, result)
	}
	want := []memberFile{
		{"a", filepath.Join(group, "a.bundle")},
		{"b", filepath.Join(group, "b.bundle")},
		{"c", filepath.Join(group, "c.bundle")},
	}
	if !slices.Equal(got.Members, want) {
		t.Errorf("init: got members %+v, want %+v", got.Members, want)
	}
	for _, m := range got.Members {
		if part, err := bundle.Read(m.File); err != nil || part.Self != m.Name {
			t.Errorf("init: bundle of %s: %v", m.Name, err)
		}
	}
}

// TestInitFormats checks the other formats of ensemble init, and that a directory as --output, its former meaning,
// still works with a warning.
func TestInitFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	initArgs := func(args ...string) []string {
		return append(args, "--base-url", "https://freshet.example.com", "a=10.0.0.1", "b=10.0.0.2", "c=10.0.0.3")
	}
	for format, want := range map[string]string{
		"text": "freshet ensemble join a.bundle", "yaml": "kind: ensemble\n", "name": "",
		"jsonpath={.members[*].name}": "a b c\n",
	} {
		out := filepath.Join(dir, strings.Trim(format, "={}[*]."))
		r := run(t, initArgs("ensemble", "init", "--out", out, "-o", format)...)
		if format == "name" {
			ensemble, err := bundle.ReadEnsemble(filepath.Join(out, bundle.EnsembleFile))
			if err != nil {
				t.Fatal(err)
			}
			want = ensemble.ID + "\n"
		}
		if r.code != ExitOK || r.err != "" || !strings.Contains(r.out, want) {
			t.Errorf("-o %s: got %+v, want %q", format, r, want)
		}
	}
	if r := run(t, initArgs("ensemble", "init", "--output", "jsn")...); r.code != ExitUsage ||
		!strings.Contains(r.err, "--out jsn") {
		t.Errorf("an unknown format: got %+v, want exit code %d and the flag --out", r, ExitUsage)
	}
	if _, err := os.Stat("jsn"); !os.IsNotExist(err) {
		t.Errorf("an unknown format: got %v, want nothing written", err)
	}
	group := filepath.Join(dir, "group")
	r := run(t, initArgs("ensemble", "init", "--output", group)...)
	if r.code != ExitOK || !strings.Contains(r.err, "--out "+group) || !strings.Contains(r.out, "ensemble join") {
		t.Errorf("a directory as --output: got %+v, want a warning that names --out", r)
	}
	if _, err := os.Stat(filepath.Join(group, "a.bundle")); err != nil {
		t.Errorf("a directory as --output: %v", err)
	}
}

func TestMigratePrintsJSON(t *testing.T) {
	t.Parallel()
	var got struct {
		Member, DataDir string
		Repeated        bool
		Parts           []struct {
			Of, Part string
			Messages int
		}
	}
	decode(t, &got, "migrate", "--from", "old", "--config", os.DevNull)
	if got.Member != "a" || got.DataDir != "a-data" || got.Repeated || len(got.Parts) != 1 ||
		got.Parts[0].Of != "acme/prod" || got.Parts[0].Messages != 40 {
		t.Errorf("got %+v", got)
	}
}
