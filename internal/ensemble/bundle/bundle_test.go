package bundle_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/ensemble/bundle"
	"freshet/test/tally"
)

var names = []string{"a", "b", "c"}

func newEnsemble(t *testing.T) *bundle.Ensemble {
	t.Helper()
	var list []bundle.Member
	for _, name := range names {
		list = append(list, bundle.Member{
			Name: name, Internal: "127.0.0.1:7443", Etcd: "127.0.0.1:7380",
			Log: name + ".example.com:7422",
		})
	}
	g, err := bundle.New("https://freshet.example.com", list, []byte("keys"))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// install writes a member's bundle into a new data directory.
func install(t *testing.T, g *bundle.Ensemble, name string) string {
	t.Helper()
	dir := t.TempDir()
	part, err := g.Bundle(name, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Install(installPaths(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func installPaths(dir string) bundle.Paths {
	return bundle.Paths{
		DataDir: dir, CertDir: filepath.Join(dir, "members"),
		EncryptionKeys: filepath.Join(dir, "encryption.key"),
	}
}

func open(t *testing.T, g *bundle.Ensemble, name string) *bundle.Credentials {
	t.Helper()
	c, err := bundle.Open(filepath.Join(install(t, g, name), "members"), name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFilesRoundTrip(t *testing.T) {
	t.Parallel()
	g, dir := newEnsemble(t), t.TempDir()
	path := filepath.Join(dir, bundle.EnsembleFile)
	if err := bundle.Write(path, g); err != nil {
		t.Fatal(err)
	}
	if err := bundle.Write(path, g); err == nil {
		t.Error("an ensemble file was overwritten, want an error")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v (%v), want 0600", info.Mode(), err)
	}
	read, err := bundle.ReadEnsemble(path)
	if err != nil || read.ID != g.ID || read.CA != g.CA {
		t.Fatalf("got %+v, %v, want the ensemble that was written", read, err)
	}
	if _, err := bundle.Read(path); err == nil {
		t.Error("an ensemble file was accepted as a bundle")
	}
	part, err := read.Bundle("b", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.Write(filepath.Join(dir, "b"), part); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "b"))
	if err != nil || bytes.Contains(text, []byte(strings.Split(g.CA.Key, "\n")[1])) {
		t.Errorf("the bundle contains the key of the members' authority (%v)", err)
	}
	if got, err := bundle.Read(filepath.Join(dir, "b")); err != nil || !got.Existing || got.Self != "b" {
		t.Errorf("got %+v, %v, want the bundle of b", got, err)
	}
	if _, err := g.Bundle("d", false); errs.KindOf(err) != errs.NotFound {
		t.Errorf("bundle of an unknown member: got %v, want not found", err)
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	g := newEnsemble(t)
	part, err := g.Bundle("a", true)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 { // installing is idempotent
		if err := part.Install(installPaths(dir)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"encryption.key": "keys", "admin.token": g.Secrets.AdminToken,
		"tls/ca.crt": g.Secrets.ClientCA.Certificate,
	} {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
	if j, err := bundle.ReadJoinConfig(filepath.Join(dir, "members")); err != nil ||
		j.EnsembleID != g.ID || !j.Existing {
		t.Errorf("got %+v, %v, want a member that joins a running ensemble", j, err)
	}
	other, err := newEnsemble(t).Bundle("a", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Install(installPaths(dir)); errs.KindOf(err) != errs.Conflict {
		t.Errorf("installing another ensemble's bundle on top: got %v, want a conflict", err)
	}
	used := t.TempDir()
	if err := os.Mkdir(filepath.Join(used, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := part.Install(installPaths(used)); errs.KindOf(err) != errs.Conflict {
		t.Errorf("used data directory: got %v, want a conflict", err)
	}
	if _, err := bundle.Open(filepath.Join(dir, "members"), "b"); err == nil ||
		!strings.Contains(err.Error(), `member "a"`) {
		t.Errorf("bundle of another member: got %v, want an error", err)
	}
}

// TestAttackMembersTLS connects to a member's listener with invalid credentials.
func TestAttackMembersTLS(t *testing.T) {
	t.Parallel()
	g, foreign := newEnsemble(t), newEnsemble(t)
	server := open(t, g, "a")
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server.ServerTLS(names))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.WriteString(conn, "hello"); _ = conn.Close() }()
		}
	}()
	greeted := func(config *tls.Config) bool {
		conn, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: config}).DialContext(t.Context(), "tcp",
			listener.Addr().String())
		if err != nil {
			return false
		}
		defer conn.Close()
		_, err = io.ReadFull(conn, make([]byte, 5))
		return err == nil
	}
	if !greeted(open(t, g, "b").ClientTLS("a")) {
		t.Fatal("a member was rejected by another member")
	}
	if greeted(open(t, g, "b").ClientTLS("c")) {
		t.Error("a member was accepted under another member's name")
	}
	stranger := &bundle.Ensemble{
		Version: 1,
		Members: []bundle.Member{{Name: "d", Internal: "127.0.0.1:1", Log: "127.0.0.1:2"}}, CA: g.CA,
	}
	bare := open(t, g, "b").ClientTLS("a")
	bare.Certificates = nil
	attempts := map[string]*tls.Config{
		"no certificate": bare,
		"certificate of another ensemble": {
			InsecureSkipVerify: true, //nolint:gosec // the attacker skips verification
			Certificates:       open(t, foreign, "b").ClientTLS("a").Certificates,
		},
		"certificate of a member that is not in the list": open(t, stranger, "d").ClientTLS("a"),
	}
	successes := 0
	for name, config := range attempts {
		if greeted(config) {
			successes++
			t.Errorf("%s: was accepted", name)
		}
	}
	tally.Attack(t, "member's listener without a member's certificate", len(attempts), successes)
}

// TestJoinConfig flips every bit of join.json. ReadJoinConfig finds it, unless the content is the same. It accepts a
// file of an earlier version, which has no checksum, and Install adds one.
func TestJoinConfig(t *testing.T) {
	t.Parallel()
	part, err := newEnsemble(t).Bundle("a", true)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	members := filepath.Join(dir, "members")
	path := filepath.Join(members, "join.json")
	if err := part.Install(installPaths(dir)); err != nil {
		t.Fatal(err)
	}
	want, err := bundle.ReadJoinConfig(members)
	if err != nil || want.Sum == "" {
		t.Fatalf("got %+v, %v, want a checksum", want, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for at := range text {
		for bit := range 8 {
			damaged := bytes.Clone(text)
			damaged[at] ^= 1 << bit
			write(damaged)
			got, err := bundle.ReadJoinConfig(members)
			if got.Sum = want.Sum; err == nil && got != want {
				t.Errorf("bit %d of byte %d flipped: got %+v, want %+v or an error", bit, at, got, want)
			}
		}
	}
	write([]byte(strings.Replace(string(text), `,"sum":"`+want.Sum+`"`, "", 1)))
	old := want
	old.Sum = ""
	if got, err := bundle.ReadJoinConfig(members); err != nil || got != old {
		t.Errorf("without a checksum: got %+v, %v, want %+v", got, err, old)
	}
	if err := part.Install(installPaths(dir)); err != nil {
		t.Fatal(err)
	}
	if got, err := bundle.ReadJoinConfig(members); err != nil || got != want {
		t.Errorf("installed again: got %+v, %v, want %+v", got, err, want)
	}
}

// TestRepair damages each file of an installed bundle, in every way. Open or ReadJoinConfig must name
// the file and the command, and Install must repair a used data directory, but only that of the same
// member.
func TestRepair(t *testing.T) {
	t.Parallel()
	g := newEnsemble(t)
	part, err := g.Bundle("a", false)
	if err != nil {
		t.Fatal(err)
	}
	harms := map[string]func([]byte) []byte{
		"flip":   func(data []byte) []byte { data[len(data)/2] ^= 1; return data },
		"cut":    func(data []byte) []byte { return data[:len(data)/2] },
		"zero":   func(data []byte) []byte { clear(data); return data },
		"delete": func([]byte) []byte { return nil },
	}
	for _, file := range []string{"ca.crt", "member.crt", "member.key", "join.json"} {
		for how, harm := range harms {
			t.Run(how+" "+file, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := part.Install(installPaths(dir)); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "FORMAT"), nil, 0o600); err != nil { // a server has used it
					t.Fatal(err)
				}
				path := filepath.Join(dir, "members", file)
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if data = harm(data); data == nil {
					err = os.Remove(path)
				} else {
					err = os.WriteFile(path, data, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				_, err = bundle.Open(filepath.Join(dir, "members"), "a")
				if err == nil {
					_, err = bundle.ReadJoinConfig(filepath.Join(dir, "members"))
				}
				// The key has a bit that nobody reads.
				if err == nil && (file != "member.key" || how != "flip") {
					t.Fatal("the damage was not found")
				}
				if err != nil && (!strings.Contains(err.Error(), file) ||
					!strings.Contains(err.Error(), "freshet ensemble join")) {
					t.Errorf("got %v, want the file and the command", err)
				}
				if err := part.Install(installPaths(dir)); err != nil {
					t.Fatalf("repair: %v", err)
				}
				_, err = bundle.Open(filepath.Join(dir, "members"), "a")
				if err == nil {
					_, err = bundle.ReadJoinConfig(filepath.Join(dir, "members"))
				}
				if err != nil {
					t.Errorf("after the repair: %v", err)
				}
			})
		}
	}
	other, err := newEnsemble(t).Bundle("a", false)
	if err != nil {
		t.Fatal(err)
	}
	used := install(t, g, "a")
	if err := os.WriteFile(filepath.Join(used, "FORMAT"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Install(installPaths(used)); errs.KindOf(err) != errs.Conflict {
		t.Errorf("bundle of another ensemble: got %v, want a conflict", err)
	}
	b, err := g.Bundle("b", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Install(installPaths(used)); errs.KindOf(err) != errs.Conflict {
		t.Errorf("bundle of another member: got %v, want a conflict", err)
	}
}
