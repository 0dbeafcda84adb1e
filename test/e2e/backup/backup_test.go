package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/test/testserver"
)

// TestBackupUnderLoad takes backups under load, restores each one to another directory and
// another address, and checks that all stores contain everything that was acknowledged
// before the backup began.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	server := start(t, testserver.Options{})
	keys := makeKeys(t, server)
	uid := makeCluster(t, server)
	work := startLoad(t, server, "load", 1500)
	target := filepath.Join(t.TempDir(), "backups")
	var before [2]*facts
	var paths [2]string
	for i := range before {
		awaitMore(t, work, 300*(i+1))
		before[i] = work.now()
		paths[i] = strings.TrimSpace(strings.Split(freshet(t, "backup", target, "--data-dir", server.DataDir), "\n")[0])
	}
	archive := filepath.Join(t.TempDir(), "freshet.tar")
	beforeTar := work.now()
	tarBackup(t, server, archive)
	ever := work.end()
	if n := before[1].count(); len(before[1].sent) == 0 || len(before[1].acked) == 0 || len(before[1].schemas) == 0 ||
		len(before[1].accounts) == 0 {
		t.Fatalf("got %d acknowledged operations, want some of each kind: %d messages, %d acknowledgements, %d "+
			"schemas, %d accounts",
			n, len(before[1].sent), len(before[1].acked), len(before[1].schemas), len(before[1].accounts))
	}
	checkPrivate(t, target)
	freshet(t, "backup", "verify", archive)
	for name, c := range map[string]struct {
		from   string
		before *facts
	}{"first": {paths[0], before[0]}, "newest in its folder": {target, before[1]}, "stream": {archive, beforeTar}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			freshet(t, "backup", "verify", c.from)
			again := restored(t, c.from, func(dir string) {
				// Simulates a cluster that was created during the backup: its store is not in the backup.
				removeStore(t, dir, uid)
			})
			check(t, again, c.before, ever)
			keys.check(t, again)
			must(t, again, http.MethodPut, "/clusters/acme/prod/admin/v2/persistent/public/default/new/subscription/s",
				"")
			if name == "first" {
				checkLostStore(t, again, uid)
			}
		})
	}
}

// removeStore changes a restored directory as if the store of a cluster were not in the
// backup.
func removeStore(t *testing.T, dir, uid string) {
	t.Helper()
	list := filepath.Join(dir, "restored.json")
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var stores struct {
		Clusters []string `json:"clusters"`
	}
	if err := json.Unmarshal(text, &stores); err != nil {
		t.Fatal(err)
	}
	if len(stores.Clusters) != 2 || !slices.Contains(stores.Clusters, uid) {
		t.Errorf("stores in the backup: got %q, want the default cluster's and %s", stores.Clusters, uid)
	}
	stores.Clusters = slices.DeleteFunc(stores.Clusters, func(c string) bool { return c == uid })
	if text, err = json.Marshal(stores); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "clusters", uid)),
		os.WriteFile(list, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// checkLostStore checks that, after a restored server has started once, a lost store is
// reported as damage and not created again.
func checkLostStore(t *testing.T, server *testserver.Server, uid string) {
	t.Helper()
	if err := server.Stop(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(server.DataDir, "clusters", uid)); err != nil {
		t.Fatal(err)
	}
	again := start(t, testserver.Options{DataDir: server.DataDir, AllowUnready: true})
	status, _, text, err := call(t.Context(), again, again.Token, http.MethodGet,
		"/clusters/acme/prod/admin/v2/persistent/public/default", "")
	if err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("cluster with a lost store: got %d %s, %v, want 503", status, text, err)
	}
}

// awaitMore waits until n operations have been acknowledged, with some of each kind.
func awaitMore(t *testing.T, work *load, n int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		if f := work.now(); f.count() >= n && len(f.acked) > 0 && len(f.schemas) > 0 && len(f.accounts) > 0 {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatalf("only %d operations were acknowledged, want %d", work.now().count(), n)
		}
	}
}

func tarBackup(t *testing.T, server *testserver.Server, to string) {
	t.Helper()
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "backup", "-", "--data-dir", server.DataDir)
	cmd.Stdout = file
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// issued holds the tokens of two API keys: one that works only by a permission of its
// namespace, and one that was revoked.
type issued struct{ good, revoked string }

func makeKeys(t *testing.T, server *testserver.Server) issued {
	t.Helper()
	must(t, server, http.MethodPost, objects+"/serviceaccounts", `{"metadata":{"name":"app"}}`)
	token := func(name string) string {
		var response struct {
			Status struct {
				Token string `json:"token"`
			} `json:"status"`
		}
		text := must(t, server, http.MethodPost, objects+"/apikeys",
			fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"serviceAccountName":"app","instanceName":"default"}}`, name))
		if err := json.Unmarshal([]byte(text), &response); err != nil || response.Status.Token == "" {
			t.Fatalf("%v in %s", err, text)
		}
		return response.Status.Token
	}
	must(t, server, http.MethodPost, "/admin/v2/namespaces/public/default/permissions/app@default",
		`["produce","consume"]`)
	keys := issued{token("good"), token("bad")}
	revoke(t, server, "bad")
	if status := keys.use(t, server, keys.good); status != http.StatusCreated {
		t.Fatalf("valid key: got %d, want 201", status)
	}
	if status := keys.use(t, server, keys.revoked); status != http.StatusUnauthorized {
		t.Fatalf("revoked key: got %d, want 401", status)
	}
	return keys
}

func revoke(t *testing.T, server *testserver.Server, name string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL+objects+"/apikeys/"+name,
		strings.NewReader(`{"spec":{"revoke":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+server.Token)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // only the status is used
	if response.StatusCode != http.StatusOK {
		t.Fatalf("revoking a key: got %d, want 200", response.StatusCode)
	}
}

func (issued) use(t *testing.T, server *testserver.Server, token string) int {
	t.Helper()
	must(t, server, http.MethodPut, "/admin/v2/persistent/public/default/keys/subscription/s", "")
	status, _, text, err := call(t.Context(), server, token, http.MethodPost,
		"/admin/rest/topics/v1/public/default/keys/message", "by key")
	if err != nil {
		t.Fatalf("%v %s", err, text)
	}
	return status
}

// check checks that the keys have the same validity on the restored server.
func (k issued) check(t *testing.T, server *testserver.Server) {
	t.Helper()
	if status := k.use(t, server, k.good); status != http.StatusCreated {
		t.Errorf("valid key: got %d, want 201", status)
	}
	if status := k.use(t, server, k.revoked); status != http.StatusUnauthorized {
		t.Errorf("revoked key: got %d, want 401", status)
	}
}

func makeCluster(t *testing.T, server *testserver.Server) (uid string) {
	t.Helper()
	acme := "/apis/cloud.vendor.io/v1alpha1/namespaces/acme"
	must(t, server, http.MethodPost, acme+"/messaginginstances", `{"metadata":{"name":"prod"}}`)
	text := must(t, server, http.MethodPost, acme+"/messagingclusters",
		`{"metadata":{"name":"prod"},"spec":{"instanceName":"prod","location":"local","broker":{"replicas":1}}}`)
	var created struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(text), &created); err != nil || created.Metadata.UID == "" {
		t.Fatalf("%v in %s", err, text)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		status, _, _, err := call(t.Context(), server, server.Token, http.MethodPut,
			"/clusters/acme/prod/admin/v2/persistent/public/default/t/subscription/s", "")
		if err == nil && status < http.StatusBadRequest {
			return created.Metadata.UID
		}
		if time.Now().After(deadline) {
			t.Fatalf("cluster does not respond: %d, %v", status, err)
		}
	}
}

// checkPrivate checks that only the owner can read a backup.
func checkPrivate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if want := os.FileMode(0o600); !d.IsDir() && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		if want := os.FileMode(0o700); d.IsDir() && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBackupOfLittleChange takes two backups: the second one hard-links the unchanged files.
func TestBackupOfLittleChange(t *testing.T) {
	t.Parallel()
	server := start(t, testserver.Options{})
	must(t, server, http.MethodPut, "/admin/v2/persistent/public/default/load/subscription/s", "")
	body := strings.Repeat("x", 512<<10)
	for range 8 { // enough to be flushed to a table before the copy
		must(t, server, http.MethodPost, topic+"/message", body)
	}
	target := filepath.Join(t.TempDir(), "backups")
	for range 2 {
		freshet(t, "backup", target, "--data-dir", server.DataDir)
	}
	tables, err := filepath.Glob(filepath.Join(target, "*", "clusters", "*", "*.sst"))
	if err != nil || len(tables) < 2 {
		t.Fatalf("got tables %v, %v; want some in each backup", tables, err)
	}
	for _, table := range tables {
		info, err := os.Stat(table)
		if err != nil {
			t.Fatal(err)
		}
		if links := info.Sys().(*syscall.Stat_t).Nlink; links < 3 {
			t.Errorf("%s has %d links, want 3: the store and two backups", table, links)
		}
	}
	if list := freshet(t, "backup", "list", target); strings.Count(list, "with keys") != 2 {
		t.Errorf("got the list\n%s\nwant two backups", list)
	}
	if out := freshet(t, "backup", target, "--data-dir", server.DataDir, "--keep", "1"); strings.Count(out,
		"removed ") != 2 {
		t.Errorf("got\n%s\nwant two old backups removed", out)
	}
	freshet(t, "backup", "verify", target)
}

// TestBackupOnSchedule checks that the server takes scheduled backups.
func TestBackupOnSchedule(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "backups")
	server := start(t, testserver.Options{Env: []string{
		"FRESHET_BACKUP_DIRECTORY=" + target, "FRESHET_BACKUP_EVERY=1h",
		"FRESHET_BACKUP_WITHOUT_KEYS=true",
	}})
	deadline := time.After(time.Minute)
	for {
		if _, code := try(t, "backup", "verify", target); code == 0 {
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatalf("no backup after a minute\n%s", server.Log())
		}
	}
	checkPrivate(t, target)
	dir := filepath.Join(t.TempDir(), "restored")
	if out, code := try(t, "restore", target, "--data-dir", dir); code == 0 ||
		!strings.Contains(out, "--encryption-key") {
		t.Errorf("restoring a backup without keys: got exit code %d\n%s\nwant an error that names --encryption-key",
			code, out)
	}
	freshet(t, "restore", target, "--data-dir", dir, "--encryption-key",
		filepath.Join(server.DataDir, "encryption.key"))
	start(t, testserver.Options{DataDir: dir})
	if out, code := try(t, "restore", target, "--data-dir", dir); code != 5 || !strings.Contains(out, "not empty") {
		t.Errorf("restoring over data: got exit code %d\n%s\nwant 5 and the error that it is not empty", code, out)
	}
}
