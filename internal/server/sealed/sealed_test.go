package sealed

import (
	"maps"
	"os"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/identity"
	"freshet/internal/identity/atrest"
	"freshet/internal/ops/datadir"
)

// TestSecrets counts the secrets of a stopped and of a running server.
func TestSecrets(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	if _, err := Secrets(t.Context(), cfg, "x"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("empty directory: got %v, want an error of kind not found", err)
	}
	sealer, err := identity.OpenSealer(cfg.EncryptionKeyFile())
	if err != nil {
		t.Fatal(err)
	}
	active := sealer.KeyIDs()[0]
	storeSecrets(t, cfg, sealer)
	got, err := Secrets(t.Context(), cfg, active)
	if want := map[string]int{active: 2}; err != nil || !maps.Equal(got, want) {
		t.Errorf("stopped server: got %v, %v; want %v", got, err, want)
	}
	running, err := datadir.Acquire(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Release() }() // the test is over
	if _, err := Secrets(t.Context(), cfg, active); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("running server without a record: got %v, want an error of kind unavailable", err)
	}
	record := []byte(`{"active":"` + active + `","sealed":{"` + active + `":5}}`)
	if err := os.WriteFile(cfg.Path(atrest.RecordFile), record, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Secrets(t.Context(), cfg, active); err != nil || got[active] != 5 {
		t.Errorf("running server: got %v, %v; want the 5 secrets of its record", got, err)
	}
}

// storeSecrets stores two sealed values and one that is not sealed.
func storeSecrets(t *testing.T, cfg *config.Config, sealer *identity.Sealer) {
	t.Helper()
	member, err := etcd.Start(t.Context(), cfg.Path("etcd"), etcd.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := member.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/resources/a", "/signing-keys"} {
		key := cfg.Etcd.Prefix + name
		value, err := sealer.Seal([]byte("secret"), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Put(t.Context(), key, string(value)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Put(t.Context(), cfg.Etcd.Prefix+"/resources/b", "plain"); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := member.Close(); err != nil {
		t.Fatal(err)
	}
}
