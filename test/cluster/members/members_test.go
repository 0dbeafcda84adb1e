// Package members_test has three real processes run as one group, and looks at what
// groups promise of resources, of who leads and of revocation (docs/spec/group.md).
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

	"freshet/test/cluster/chaos"
	"freshet/test/tally"
	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) {
	if os.Getenv("FRESHET_TEST_CLUSTER") == "" {
		fmt.Println("NOT TESTED: groups of three processes; make test-cluster does")
		return
	}
	testserver.Main(m, &binary)
}

// group is a running one.
type group struct {
	*chaos.Group
	dir string
}

func start(t *testing.T) *group {
	t.Helper()
	dir := t.TempDir()
	g, err := chaos.NewGroup(t.Context(), chaos.GroupOptions{Binary: binary, Dir: dir}, 1)
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
	return &group{g, dir}
}

func (g *group) member(t *testing.T, name string) *chaos.Member {
	t.Helper()
	for _, m := range g.Members {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("there is no member %q", name)
	return nil
}

const cloud = "/apis/cloud.vendor.io/v1alpha1/namespaces/acme/"

// call asks a member once. Status 0 is no answer.
func call(ctx context.Context, m *chaos.Member, token, method, path, body string) (status int, answer []byte) {
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
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return response.StatusCode, answer
}

// must is call for what has to work.
func must(t *testing.T, m *chaos.Member, method, path, body string) []byte {
	t.Helper()
	status, answer := call(t.Context(), m, m.Token(), method, path, body)
	if status < 200 || status > 299 {
		t.Fatalf("%s %s at %s: got %d %s", method, path, m.Name, status, answer)
	}
	return answer
}

// await asks until something is so.
func await(t *testing.T, what string, limit time.Duration, yes func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		if time.Since(began) > limit {
			t.Fatalf("%s: not within %s", what, limit)
		}
		<-tick.C
	}
	return time.Since(began)
}

// controller is the member that the one which is asked calls so.
func controller(t *testing.T, asked *chaos.Member) string {
	t.Helper()
	var status struct {
		Controller string `json:"controller"`
	}
	if code, answer := call(t.Context(), asked, asked.Token(), http.MethodGet, "/system/v1alpha1/members",
		""); code == http.StatusOK {
		if err := json.Unmarshal(answer, &status); err != nil {
			t.Fatal(err)
		}
	}
	return status.Controller
}

func account(name string) string {
	return fmt.Sprintf(`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"ServiceAccount","metadata":{"name":%q}}`, name)
}

// ready says whether a service account has its credentials, which a controller gives
// it.
func ready(t *testing.T, m *chaos.Member, name string) bool {
	t.Helper()
	status, answer := call(t.Context(), m, m.Token(), http.MethodGet, cloud+"serviceaccounts/"+name, "")
	return status == http.StatusOK && bytes.Contains(answer, []byte(`"privateKeyData"`))
}

// TestFaultController kills the member that runs the controllers, stops the next one,
// and restarts all of them: another takes over, and nothing is lost.
func TestFaultController(t *testing.T) {
	g := start(t)
	a, b, c := g.Members[0], g.Members[1], g.Members[2]
	fault := tally.Fault{Name: "member that runs the controllers"}
	must(t, a, http.MethodPost, cloud+"serviceaccounts", account("first"))
	must(t, b, http.MethodGet, cloud+"serviceaccounts/first", "") // at once
	must(t, c, http.MethodPatch, cloud+"serviceaccounts/first", `{"metadata":{"labels":{"at":"c"}}}`)
	if answer := must(t, a, http.MethodGet, cloud+"serviceaccounts/first", ""); !bytes.Contains(answer,
		[]byte(`"at": "c"`)) && !bytes.Contains(answer, []byte(`"at":"c"`)) {
		t.Errorf("a does not have what c wrote: %s", answer)
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

// key makes an API key of an account and returns its token.
func key(t *testing.T, m *chaos.Member, name string) string {
	t.Helper()
	answer := must(t, m, http.MethodPost, cloud+"apikeys",
		fmt.Sprintf(`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"APIKey","metadata":{"name":%q},"spec":{"serviceAccountName":"robot"}}`, name))
	var made struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || made.Status.Token == "" {
		t.Fatalf("got no token: %v %s", err, answer)
	}
	return made.Status.Token
}

// accepted says whether a member knows who the holder of a token is, whatever they may
// do.
func accepted(t *testing.T, m *chaos.Member, token string) bool {
	t.Helper()
	status, _ := call(t.Context(), m, token, http.MethodGet, cloud+"serviceaccounts", "")
	return status == http.StatusOK || status == http.StatusForbidden
}

// TestAttackRevokedKey uses keys at every member from the moment on that their
// revocation has returned, also when a member was paused meanwhile.
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
				t.Fatalf("a new key of %s is refused by %s", at.Name, m.Name)
			}
		}
		if i%2 == 0 {
			must(t, at, http.MethodPatch, cloud+"apikeys/"+name, `{"spec":{"revoke":true}}`)
		} else {
			must(t, at, http.MethodDelete, cloud+"apikeys/"+name, "")
		}
		use(token, "at once")
	}

	token := key(t, g.Members[0], "paused")
	paused := g.Members[2]
	if !accepted(t, paused, token) {
		t.Fatal("a new key is refused")
	}
	if err := paused.Pause(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	await(t, "revocation with a paused member", time.Minute, func() bool { // its leader may be the paused one
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
	tally.Attack(t, "use a revoked key at any member of a group", attempts, successes)
}

// TestFaultNoMajority leaves one member alone: it answers nothing and says why.
func TestFaultNoMajority(t *testing.T) {
	g := start(t)
	a, b, c := g.Members[0], g.Members[1], g.Members[2]
	must(t, a, http.MethodPost, cloud+"serviceaccounts", account("robot"))
	fault := tally.Fault{Name: "majority of a group lost", Injected: 1}
	b.Kill()
	c.Kill()
	await(t, "it refuses", 20*time.Second, func() bool {
		status, _ := call(t.Context(), a, a.Token(), http.MethodGet, cloud+"serviceaccounts/robot", "")
		return status == http.StatusServiceUnavailable
	})
	for path, want := range map[string]int{
		"/livez": 200, "/readyz": 503, "/admin/v2/persistent/public/default": 503,
		"/subjects": 503, cloud + "apikeys": 503,
	} {
		fault.Checked++
		if status, answer := call(t.Context(), a, a.Token(), http.MethodGet, path, ""); status != want {
			fault.Wrong++
			t.Errorf("GET %s of a member that is alone: got %d %s, want %d", path, status, answer, want)
		}
	}
	if _, answer := call(t.Context(), a, "", http.MethodGet, "/readyz", ""); !bytes.Contains(answer,
		[]byte("majority")) {
		t.Errorf("/readyz says %q, want a word about the majority", answer)
	}
	a.Kill()
	started := make(chan error, 1)
	go func() { started <- a.Start(t.Context()) }()
	await(t, "it starts, and turns clients of the stream protocol away", 20*time.Second,
		func() bool { return resets(t, a.Stream) })
	began := time.Now()
	if err := errors.Join(b.Start(t.Context()), <-started); err != nil {
		t.Fatal(err)
	}
	await(t, "it serves again", time.Minute, func() bool {
		status, _ := call(t.Context(), a, a.Token(), http.MethodGet, cloud+"serviceaccounts/robot", "")
		return status == http.StatusOK
	})
	fault.Recovery = time.Since(began)
	fault.Record(t)
}

// resets says whether a connection is reset that somebody makes there, rather than left
// to wait.
func resets(t *testing.T, address string) bool {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // else it waits for longer
		_, err = conn.Read(make([]byte, 1))
	}
	return errors.Is(err, syscall.ECONNRESET)
}

// TestFaultReplacedMember loses the disk of a member and puts an empty one in its
// place.
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
	if out, err := freshet("cluster", "status"); err != nil || strings.Count(out, "ready") != 3 {
		t.Errorf("status of a healthy group: got %v\n%s", err, out)
	}
	if out, err := freshet("cluster", "replace", "c", "--group", filepath.Join(g.dir, "group")); err == nil {
		t.Errorf("a live member was replaced: %s", out)
	}
	c.Kill()
	if err := os.RemoveAll(filepath.Join(g.dir, "c")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	await(t, "the group forgets it", time.Minute, func() bool {
		out, err := freshet("cluster", "replace", "c", "--group", filepath.Join(g.dir, "group"))
		if err != nil && !strings.Contains(out, "live") {
			t.Log(out)
		}
		return err == nil
	})
	if out, err := freshet("cluster", "status"); err == nil || !strings.Contains(out, "Problem: member c") {
		t.Errorf("status with a lost member: got %v\n%s", err, out)
	}
	if out, err := freshet("cluster", "join", filepath.Join(g.dir, "group", "c-new.bundle"), "--data-dir",
		filepath.Join(g.dir, "c"), "--config", filepath.Join(g.dir, "c.yaml")); err != nil {
		t.Fatalf("join: %v\n%s", err, out)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	fault.Recovery = time.Since(began)
	if !ready(t, c, "robot") {
		fault.Lost++
		t.Error("the new member lacks what the old one had stored")
	}
	a.Kill() // the new one counts
	await(t, "b and the new member are a majority", time.Minute, func() bool {
		status, _ := call(t.Context(), c, c.Token(), http.MethodPost, cloud+"serviceaccounts", account("other"))
		return status == http.StatusCreated || status == http.StatusConflict
	})
	fault.Record(t)
}
