package members_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"freshet/test/tally"
)

// TestFaultDamagedMember damages the files of a stopped member: its etcd data, its secrets and its
// certificate. The member refuses to start with the name of the file and the command, or fetches the
// file from the others, and ends with everything that the others have.
func TestFaultDamagedMember(t *testing.T) {
	g := start(t)
	a, c := g.Members[0], g.Members[2]
	must(t, c, http.MethodPost, cloud+"serviceaccounts", account("robot"))
	fault := tally.Fault{Name: "etcd data, secrets and certificate of a member damaged"}
	dir, config := filepath.Join(g.dir, "c"), filepath.Join(g.dir, "c.yaml")
	freshet := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		return string(out), err
	}
	zero := func(path string) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err == nil {
			clear(data[:min(len(data), 64<<10)])
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refuses := func(what string, want ...string) {
		t.Helper()
		err := c.Start(t.Context())
		if err == nil {
			t.Fatalf("%s: the member started", what)
		}
		for _, text := range want {
			if log := err.Error() + c.Log(); !strings.Contains(log, text) || strings.Contains(log, "goroutine ") {
				t.Errorf("%s: got %s, want %q", what, log, text)
			}
		}
	}
	if out, err := freshet("ensemble", "rejoin", "--config", config); err == nil {
		t.Errorf("running member: got %s, want an error", out)
	}
	c.Kill()

	// The certificate: the bundle repairs it.
	fault.Injected++
	zero(filepath.Join(dir, "members", "member.crt"))
	refuses("certificate", "member.crt", "freshet ensemble join")
	if out, err := freshet("check", dir); err == nil || !strings.Contains(out, "freshet ensemble join") {
		t.Errorf("check of a damaged certificate: got %v\n%s", err, out)
	}
	if out, err := freshet("ensemble", "join", filepath.Join(g.dir, "group", "c.bundle"), "--data-dir", dir, "--config",
		config); err != nil {
		t.Fatalf("join: %v\n%s", err, out)
	}

	// etcd: refused with the command, which fetches the data from the others.
	if out, err := freshet("ensemble", "rejoin", "--config", config); err == nil || !strings.Contains(out, "intact") {
		t.Errorf("rejoin with intact data: got %v\n%s", err, out)
	}
	fault.Injected++
	zero(filepath.Join(dir, "etcd", "member", "snap", "db"))
	refuses("etcd", "member/snap/db", "freshet ensemble rejoin")
	if out, err := freshet("check", dir); err == nil || !strings.Contains(out, "freshet ensemble rejoin") {
		t.Errorf("check of damaged etcd data: got %v\n%s", err, out)
	}
	began := time.Now()
	if out, err := freshet("ensemble", "rejoin", "--config", config); err != nil {
		t.Fatalf("rejoin: %v\n%s", err, out)
	}

	// Secrets: fetched from the others without a command.
	token, keys := filepath.Join(dir, "admin.token"), filepath.Join(dir, "encryption.key")
	before, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	fault.Injected += 2
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	zero(keys)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	fault.Recovery = time.Since(began)
	if after, err := os.ReadFile(token); err != nil || string(after) != string(before) {
		fault.Wrong++
		t.Errorf("admin.token: got %v, want that of the other members", err)
	}
	fault.Checked++
	if !ready(t, c, "robot") {
		fault.Lost++
		t.Error("member does not have the data of the others")
	}
	a.Kill() // a majority needs the member that has rejoined
	await(t, "b and c are a majority", time.Minute, func() bool {
		status, _ := call(t.Context(), c, c.Token(), http.MethodPost, cloud+"serviceaccounts", account("other"))
		return status == http.StatusCreated || status == http.StatusConflict
	})
	fault.Record(t)
}
