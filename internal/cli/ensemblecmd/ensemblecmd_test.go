package ensemblecmd_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"freshet/internal/cli/command"
	"freshet/internal/cli/ensemblecmd"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/identity"
)

// run runs a command of the family and returns its output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	env := &command.Env{Streams: command.Streams{Out: &out, Err: &out}, Getenv: func(string) string { return "" }}
	cmd := ensemblecmd.Commands(env, nil)[0]
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func initEnsemble(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "group")
	if _, err := run(t, "init", "--out", dir, "--base-url", "https://freshet.example.com", "a=10.0.0.1",
		"b=b.example.com", "c=[fd00::3]"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestJoinWritesAConfiguration(t *testing.T) {
	t.Parallel()
	ensemble, dir := initEnsemble(t), t.TempDir()
	file, data := filepath.Join(dir, "freshet.yaml"), filepath.Join(dir, "data")
	for range 2 { // join can be repeated
		out, err := run(t, "join", filepath.Join(ensemble, "b.bundle"), "--data-dir", data, "--config", file)
		if err != nil || !strings.Contains(out, "freshet serve --config "+file) {
			t.Fatalf("got %q, %v, want the next step", out, err)
		}
	}
	cfg, err := config.Load(file)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	own, index := cfg.Members.Own()
	want := config.Member{
		Name: "b", Internal: "b.example.com:7443", Etcd: "b.example.com:7380",
		Log: "b.example.com:7422",
	}
	if own != want || index != 1 || cfg.DataDir != data || cfg.BaseURL != "https://freshet.example.com" {
		t.Errorf("got %+v at %d in %s, want %+v", own, index, cfg.DataDir, want)
	}
	if _, err := os.Stat(filepath.Join(data, "members", "member.key")); err != nil {
		t.Errorf("the member's key: %v", err)
	}
}

func TestJoinExtendsAConfiguration(t *testing.T) {
	t.Parallel()
	ensemble, dir := initEnsemble(t), t.TempDir()
	file := filepath.Join(dir, "freshet.yaml")
	old := "# ours\nhttps: 0.0.0.0:8443\ndataDir: " + filepath.Join(dir, "data") // without a newline
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "join", filepath.Join(ensemble, "a.bundle"), "--config", file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), old+"\n") {
		t.Fatalf("got %s, %v, want the old text first", text, err)
	}
	cfg, err := config.Load(file)
	if err != nil || cfg.HTTPS != "0.0.0.0:8443" || cfg.Members.Self != "a" {
		t.Errorf("got %+v, %v, want member a", cfg, err)
	}
	if _, err := run(t, "join", filepath.Join(ensemble, "b.bundle"), "--config", file); err == nil {
		t.Error("another member's bundle: got no error, want a refusal")
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	ensemble, dir := initEnsemble(t), t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte("datadir: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no members":    {[]string{"init", "--base-url", "https://x"}, "members are missing"},
		"no base URL":   {[]string{"init", "a=h", "b=i", "c=j"}, "--base-url"},
		"two":           {[]string{"init", "--base-url", "https://x", "a=h", "b=i"}, "2 members"},
		"same host":     {[]string{"init", "--base-url", "https://x", "a=h", "b=h", "c=j"}, "already the address"},
		"no host":       {[]string{"init", "--base-url", "https://x", "a=", "b=h", "c=j"}, "NAME=HOST"},
		"two addresses": {[]string{"init", "--base-url", "https://x", "a=h:1,h:2", "b=h", "c=j"}, "has 2 addresses"},
		"NATS settings without a URL": {[]string{
			"init", "--base-url", "https://x", "--nats-credentials", "c", "a=h", "b=i",
			"c=j",
		}, "--nats-url"},
		"half a pair": {[]string{
			"init", "--base-url", "https://x", "--nats-url", "tls://n:4222",
			"--nats-key-file", "k", "a=h", "b=i", "c=j",
		}, "must be used together"},
		"a log and NATS": {[]string{
			"init", "--base-url", "https://x", "--nats-url", "tls://n:4222", "a=h:1,h:2,h:3",
			"b=i", "c=j",
		}, "NAME=INTERNAL,ETCD with"},
		"no NATS URL": {
			[]string{"init", "--base-url", "https://x", "--nats-url", "n:4222", "a=h", "b=i", "c=j"},
			"nats://host:port",
		},
		"a secret in a NATS URL": {[]string{
			"init", "--base-url", "https://x", "--nats-url", "nats://me:secret@n:4222", "a=h",
			"b=i", "c=j",
		}, "put credentials into the file"},
		"no monitoring": {[]string{
			"init", "--base-url", "https://x", "--nats-url", "tls://n:4222",
			"--nats-monitoring", "n", "a=h", "b=i", "c=j",
		}, "http(s)://host:port"},
		"moved elsewhere": {[]string{
			"init", "--base-url", "https://x", "--from", dir, "--external-etcd", "a=h", "b=i",
			"c=j",
		}, "cannot be combined"},
		"a directory": {
			[]string{"init", "--out", ensemble, "--base-url", "https://x", "a=h", "b=i", "c=j"},
			"already exists",
		},
		"no bundle":        {[]string{"join", filepath.Join(dir, "none")}, "no such file"},
		"not a bundle":     {[]string{"join", broken}, "is not a bundle"},
		"a broken setting": {[]string{"join", filepath.Join(ensemble, "a.bundle"), "--config", broken}, "datadir"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := run(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestInitWithNATS creates an ensemble with external NATS servers: each member's
// configuration names them, and no member has a log address.
func TestInitWithNATS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	credentials := filepath.Join(dir, "nats.creds")
	if err := os.WriteFile(credentials, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	ensemble := filepath.Join(dir, "group")
	if _, err := run(t, "init", "--out", ensemble, "--base-url", "https://freshet.example.com", "--nats-url",
		"tls://n1:4222", "--nats-url", "tls://n2:4222",
		"--nats-credentials", credentials, "--nats-monitoring", "http://n1:8222", "a=10.0.0.1",
		"b=10.0.0.2:1,10.0.0.2:2", "c=c.example.com"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "freshet.yaml")
	join := []string{
		"join", filepath.Join(ensemble, "b.bundle"), "--data-dir", filepath.Join(dir, "data"),
		"--config", file,
	}
	for range 2 { // join can be repeated
		if _, err := run(t, join...); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(file)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	want := config.NATS{
		URLs: []string{"tls://n1:4222", "tls://n2:4222"}, Credentials: credentials,
		Monitoring: []string{"http://n1:8222"},
	}
	if !reflect.DeepEqual(cfg.NATS, want) {
		t.Errorf("got %+v, want %+v", cfg.NATS, want)
	}
	if own, _ := cfg.Members.Own(); own.Internal != "10.0.0.2:1" || own.Etcd != "10.0.0.2:2" || own.Log != "" ||
		cfg.Members.List[0].Log != "" {
		t.Errorf("got %+v, want the two addresses that were given", own)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("n2:4222"), []byte("n3:4222")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, join...); err == nil || !strings.Contains(err.Error(), "nats.urls") {
		t.Errorf("NATS servers that differ from the bundle's: got %v, want a refusal", err)
	}
}

// TestInitFrom creates an ensemble for the data of a single server: it has the server's
// secrets, the first member starts with the data, and the others get the data from it.
func TestInitFrom(t *testing.T) {
	t.Parallel()
	from, dir := t.TempDir(), filepath.Join(t.TempDir(), "group")
	keys := identity.NewKeyFile()
	for name, data := range map[string][]byte{
		"encryption.key": keys, "admin.token": []byte("token"),
		"tls/ca.crt": []byte("certificate"), "tls/ca.key": []byte("key"),
	} {
		path := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{
		"init", "--out", dir, "--base-url", "https://freshet.example.com", "--from", from, "a=10.0.0.1",
		"b=10.0.0.2", "c=10.0.0.3",
	}
	out, err := run(t, args...)
	if err != nil || !strings.Contains(out, "freshet migrate") || strings.Contains(out, "token") {
		t.Fatalf("got %q, %v, want the next step and no secret", out, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		part, err := bundle.Read(filepath.Join(dir, name+".bundle"))
		if err != nil {
			t.Fatal(err)
		}
		want := bundle.Secrets{
			EncryptionKeys: keys, AdminToken: "token",
			ClientCA: bundle.Pair{Certificate: "certificate", Key: "key"},
		}
		if !reflect.DeepEqual(part.Secrets, want) {
			t.Errorf("%s: the secrets differ from the server's", name)
		}
		if first := name == "a"; part.Seed != first || part.Existing == first {
			t.Errorf("%s: got seed %v and existing %v, want %v and %v", name, part.Seed, part.Existing, first, !first)
		}
	}
	ensemble, err := bundle.ReadEnsemble(filepath.Join(dir, bundle.EnsembleFile))
	if err != nil {
		t.Fatal(err)
	}
	if later, err := ensemble.Bundle("a", true); err != nil || later.Seed || !later.Existing {
		t.Errorf("replacement of the first member: got seed %+v, %v, want a member that gets its data from the others",
			later.Seed, err)
	}
	if err := os.Remove(filepath.Join(from, "encryption.key")); err != nil {
		t.Fatal(err)
	}
	args[2] = dir + "-other"
	if _, err := run(t, args...); err == nil {
		t.Error("a server without its keys: got no error")
	}
	if _, err := os.Stat(args[2]); !os.IsNotExist(err) {
		t.Errorf("directory of a refused ensemble: got %v, want nothing written", err)
	}
}
