// Package members_test runs an ensemble of three real processes and checks its guarantees
// about resources, leadership and revocation (docs/spec/ensemble.md).
package members_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"freshet/test/ensemble/chaos"
	"freshet/test/poll"
	"freshet/test/tally"
	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) {
	if os.Getenv("FRESHET_TEST_CLUSTER") == "" {
		fmt.Println("NOT TESTED: ensembles of three processes; make test-ensemble runs them")
		return
	}
	testserver.Main(m, &binary)
}

// ensemble is a running ensemble and its folder.
type ensemble struct {
	*chaos.Ensemble
	dir string
}

func start(t *testing.T) *ensemble {
	t.Helper()
	dir := t.TempDir()
	g, err := chaos.NewEnsemble(t.Context(), chaos.EnsembleOptions{Binary: binary, Dir: dir}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range g.Members {
				t.Logf("member %s:\n%s", m.Name, m.Log())
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &ensemble{g, dir}
}

func (g *ensemble) member(t *testing.T, name string) *chaos.Member {
	t.Helper()
	for _, m := range g.Members {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("member %q does not exist", name)
	return nil
}

const cloud = "/apis/cloud.vendor.io/v1alpha1/namespaces/acme/"

// call makes one call to a member. Status 0 means that there was no response.
func call(ctx context.Context, m *chaos.Member, token, method, path, body string) (status int, content []byte) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, m.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, []byte(err.Error())
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer response.Body.Close()
	content, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return response.StatusCode, content
}

// must is call for requests that must succeed.
func must(t *testing.T, m *chaos.Member, method, path, body string) []byte {
	t.Helper()
	status, content := call(t.Context(), m, m.Token(), method, path, body)
	if status < 200 || status > 299 {
		t.Fatalf("%s %s at %s: got %d %s", method, path, m.Name, status, content)
	}
	return content
}

// await polls until yes returns true, and returns the time that took.
func await(t *testing.T, what string, limit time.Duration, done func() bool) time.Duration {
	t.Helper()
	return poll.Until(t, limit, what, done)
}

// controller returns the member that runs the controllers, according to another member.
func controller(t *testing.T, reporter *chaos.Member) string {
	t.Helper()
	var status struct {
		Controller string `json:"controller"`
	}
	if code, content := call(t.Context(), reporter, reporter.Token(), http.MethodGet, "/system/v1alpha1/members",
		""); code == http.StatusOK {
		if err := json.Unmarshal(content, &status); err != nil {
			t.Fatal(err)
		}
	}
	return status.Controller
}

func account(name string) string {
	return fmt.Sprintf(`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"ServiceAccount","metadata":{"name":%q}}`, name)
}

// ready reports whether a service account has its credentials, which a controller
// creates.
func ready(t *testing.T, m *chaos.Member, name string) bool {
	t.Helper()
	status, content := call(t.Context(), m, m.Token(), http.MethodGet, cloud+"serviceaccounts/"+name, "")
	return status == http.StatusOK && bytes.Contains(content, []byte(`"privateKeyData"`))
}

// TestFaultController kills the member that runs the controllers, stops the next one, and
// restarts all members: another member takes over, and nothing is lost.
func TestFaultController(t *testing.T) {
	g := start(t)
	a, b, c := g.Members[0], g.Members[1], g.Members[2]
	fault := tally.Fault{Name: "member that runs the controllers"}
	must(t, a, http.MethodPost, cloud+"serviceaccounts", account("first"))
	must(t, b, http.MethodGet, cloud+"serviceaccounts/first", "") // without delay
	must(t, c, http.MethodPatch, cloud+"serviceaccounts/first", `{"metadata":{"labels":{"at":"c"}}}`)
	if content := must(t, a, http.MethodGet, cloud+"serviceaccounts/first", ""); !bytes.Contains(content,
		[]byte(`"at": "c"`)) && !bytes.Contains(content, []byte(`"at":"c"`)) {
		t.Errorf("member a does not return the label that c wrote: %s", content)
	}
	await(t, "credentials", 20*time.Second, func() bool { return ready(t, b, "first") })

	for i, end := range []struct {
		name string
		do   func(m *chaos.Member) error
	}{
		{"kill -9", func(m *chaos.Member) error { m.Kill(); return nil }},
		{"SIGTERM", func(m *chaos.Member) error { return m.Stop(time.Minute) }},
	} {
		leader := g.member(t, controller(t, a))
		other := b
		if leader == b {
			other = c
		}
		began := time.Now()
		var stopped sync.WaitGroup
		var err error
		stopped.Go(func() { err = end.do(leader) })
		took := await(t, "another controller after "+end.name, 30*time.Second, func() bool {
			now := controller(t, other)
			return now != "" && now != leader.Name
		})
		t.Logf("%s: another member runs the controllers after %s", end.name, took)
		fault.Injected++
		name := fmt.Sprintf("after-%d", i)
		await(t, "a write", 30*time.Second, func() bool {
			status, _ := call(t.Context(), other, other.Token(), http.MethodPost, cloud+"serviceaccounts",
				account(name))
			return status == http.StatusCreated || status == http.StatusConflict
		})
		await(t, "its controllers work", 30*time.Second, func() bool { return ready(t, other, name) })
		fault.Recovery = max(fault.Recovery, time.Since(began))
		stopped.Wait()
		if err != nil {
			t.Error(err)
		}
		if err := leader.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range g.Members {
		if err := m.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}
	fault.Injected++
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range g.Members {
		for _, name := range []string{"first", "after-0", "after-1"} {
			fault.Checked++
			if !ready(t, m, name) {
				fault.Lost++
				t.Errorf("%s is missing at %s after a restart of all", name, m.Name)
			}
		}
	}
	fault.Record(t)
}

// key creates an API key of an account and returns its token.
func key(t *testing.T, m *chaos.Member, name string) string {
	t.Helper()
	content := must(t, m, http.MethodPost, cloud+"apikeys",
		fmt.Sprintf(`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"APIKey","metadata":{"name":%q},`+
			`"spec":{"serviceAccountName":"robot"}}`, name))
	var made struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := json.Unmarshal(content, &made); err != nil || made.Status.Token == "" {
		t.Fatalf("got no token: %v %s", err, content)
	}
	return made.Status.Token
}

// accepted reports whether a member authenticates a token, whatever its permissions are.
func accepted(t *testing.T, m *chaos.Member, token string) bool {
	t.Helper()
	status, _ := call(t.Context(), m, token, http.MethodGet, cloud+"serviceaccounts", "")
	return status == http.StatusOK || status == http.StatusForbidden
}

// TestAttackRevokedKey uses keys at every member after their revocation has returned, also
// when a member was paused during the revocation.
func TestAttackRevokedKey(t *testing.T) {
	g := start(t)
	must(t, g.Members[0], http.MethodPost, cloud+"serviceaccounts", account("robot"))
	attempts, successes := 0, 0
	use := func(token, when string) {
		for _, m := range g.Members {
			attempts++
			if accepted(t, m, token) {
				successes++
				t.Errorf("%s: a revoked key was accepted by %s", when, m.Name)
			}
		}
	}
	rounds := 10
	if tally.Long() {
		rounds = 100
	}
	for i := range rounds {
		at := g.Members[i%len(g.Members)]
		name := fmt.Sprintf("key-%d", i)
		token := key(t, at, name)
		for _, m := range g.Members {
			if !accepted(t, m, token) {
				t.Fatalf("new key of %s is rejected by %s", at.Name, m.Name)
			}
		}
		if i%2 == 0 {
			must(t, at, http.MethodPatch, cloud+"apikeys/"+name, `{"spec":{"revoke":true}}`)
		} else {
			must(t, at, http.MethodDelete, cloud+"apikeys/"+name, "")
		}
		use(token, "immediately")
	}

	token := key(t, g.Members[0], "paused")
	paused := g.Members[2]
	if !accepted(t, paused, token) {
		t.Fatal("new key is rejected")
	}
	if err := paused.Pause(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	await(t, "revocation with a paused member", time.Minute, func() bool { // the paused member may be etcd's leader
		status, _ := call(t.Context(), g.Members[0], g.Members[0].Token(), http.MethodPatch, cloud+"apikeys/paused",
			`{"spec":{"revoke":true}}`)
		return status == http.StatusOK
	})
	t.Logf("a revocation with a paused member took %s", time.Since(began))
	if err := paused.Resume(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		use(token, "after a pause")
	}
	await(t, "the paused member serves again", time.Minute, func() bool {
		status, _ := call(t.Context(), paused, paused.Token(), http.MethodGet, cloud+"apikeys", "")
		return status == http.StatusOK
	})
	use(token, "when it serves again")
	tally.Attack(t, "use a revoked key at any member of an ensemble", attempts, successes)
}

// TestFaultNoMajority leaves one member without a majority: it refuses all calls and reports why.
func TestFaultNoMajority(t *testing.T) {
	g := start(t)
	a, b, c := g.Members[0], g.Members[1], g.Members[2]
	must(t, a, http.MethodPost, cloud+"serviceaccounts", account("robot"))
	fault := tally.Fault{Name: "majority of an ensemble lost", Injected: 1}
	b.Kill()
	c.Kill()
	await(t, "member without a majority refuses calls", 20*time.Second, func() bool {
		status, _ := call(t.Context(), a, a.Token(), http.MethodGet, cloud+"serviceaccounts/robot", "")
		return status == http.StatusServiceUnavailable
	})
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 503, "/admin/v2/persistent/public/default": 503,
		"/subjects": 503, cloud + "apikeys": 503,
	} {
		fault.Checked++
		if status, content := call(t.Context(), a, a.Token(), http.MethodGet, path, ""); status != want {
			fault.Wrong++
			t.Errorf("GET %s of a member without a majority: got %d %s, want %d", path, status, content, want)
		}
	}
	if _, content := call(t.Context(), a, "", http.MethodGet, "/readyz", ""); !bytes.Contains(content,
		[]byte("majority")) {
		t.Errorf("/readyz: got %q, want a mention of the majority", content)
	}
	a.Kill()
	started := make(chan error, 1)
	go func() { started <- a.Start(t.Context()) }()
	await(t, "starting member resets Kafka connections", 20*time.Second,
		func() bool { return resets(t, a.Kafka) })
	began := time.Now()
	if err := errors.Join(b.Start(t.Context()), <-started); err != nil {
		t.Fatal(err)
	}
	await(t, "member serves again", time.Minute, func() bool {
		status, _ := call(t.Context(), a, a.Token(), http.MethodGet, cloud+"serviceaccounts/robot", "")
		return status == http.StatusOK
	})
	fault.Recovery = time.Since(began)
	fault.Record(t)
}

// resets reports whether a new connection to the address is reset and not left waiting.
func resets(t *testing.T, address string) bool {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // the server could leave it waiting
		_, err = conn.Read(make([]byte, 1))
	}
	return errors.Is(err, syscall.ECONNRESET)
}

// TestFaultReplacedMember loses the disk of a member and replaces the member by an empty
// one.
func TestFaultReplacedMember(t *testing.T) {
	g := start(t)
	a, c := g.Members[0], g.Members[2]
	must(t, c, http.MethodPost, cloud+"serviceaccounts", account("robot"))
	fault := tally.Fault{Name: "disk of a member lost, and replaced by an empty one", Injected: 1, Checked: 1}
	freshet := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(os.Environ(), "HOME="+g.dir, "FRESHET_DATA_DIR="+filepath.Join(g.dir, "a"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := freshet("ensemble", "status"); err != nil || strings.Count(out, "ready") != 3 {
		t.Errorf("status of a healthy ensemble: got %v\n%s", err, out)
	}
	if out, err := freshet("ensemble", "replace", "c", "--group", filepath.Join(g.dir, "group")); err == nil {
		t.Errorf("replacing a live member succeeded: %s", out)
	}
	c.Kill()
	if err := os.RemoveAll(filepath.Join(g.dir, "c")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	await(t, "the lost member can be replaced", time.Minute, func() bool {
		out, err := freshet("ensemble", "replace", "c", "--group", filepath.Join(g.dir, "group"))
		if err != nil && !strings.Contains(out, "live") {
			t.Log(out)
		}
		return err == nil
	})
	if out, err := freshet("ensemble", "status"); err == nil || !strings.Contains(out, "Problem: member c") {
		t.Errorf("status with a lost member: got %v\n%s", err, out)
	}
	if out, err := freshet("ensemble", "join", filepath.Join(g.dir, "group", "c-new.bundle"), "--data-dir",
		filepath.Join(g.dir, "c"), "--config", filepath.Join(g.dir, "c.yaml")); err != nil {
		t.Fatalf("join: %v\n%s", err, out)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	fault.Recovery = time.Since(began)
	if !ready(t, c, "robot") {
		fault.Lost++
		t.Error("new member does not have the data of the old one")
	}
	a.Kill() // a majority needs the new member
	await(t, "b and the new member are a majority", time.Minute, func() bool {
		status, _ := call(t.Context(), c, c.Token(), http.MethodPost, cloud+"serviceaccounts", account("other"))
		return status == http.StatusCreated || status == http.StatusConflict
	})
	fault.Record(t)
}
