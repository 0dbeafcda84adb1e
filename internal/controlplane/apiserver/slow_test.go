package apiserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/test/tally"
)

// dial starts a request and sends only the first bytes of its body.
func (a *api) dial(address, method, path, contentType, begin string) (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn,
		"%s %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: 100000\r\n\r\n%s",
		method, path, a.token, contentType, begin)
	return conn, err
}

// TestAttackSlowBodies checks that calls that send nothing or little do not delay others, and end
// with 408.
func TestAttackSlowBodies(t *testing.T) {
	t.Parallel()
	const callers, limit = 200, 8 * time.Second
	a := startWith(t, kindstest.Options{MaxReads: 8, MaxWrites: 8})
	server := httptest.NewServer(web.LimitBodyTime(a.server.Handler(), limit))
	defer server.Close()
	address := server.Listener.Addr().String()
	attacker := a.as(kindstest.AcmeToken)
	calls := []struct{ method, path, contentType string }{
		{"POST", acme + "/users", jsonType},
		{"PUT", acme + "/users/x", jsonType},
		{"PATCH", acme + "/users/x", mergePatch},
		{"PATCH", acme + "/users/x?fieldManager=m", applyPatch},
		{"DELETE", acme + "/users/x", jsonType},
		{"POST", acme + "/users/x", "text/plain"},
		{"POST", "/api/v1/namespaces/acme/serviceaccounts/robot/token", jsonType},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", jsonType},
	}
	conns := make([]net.Conn, callers)
	for i := range conns {
		call, begin := calls[i%len(calls)], ""
		if i%3 == 0 {
			begin = "{"
		}
		conn, err := attacker.dial(address, call.method, call.path, call.contentType, begin)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn
	}
	failed := 0
	for i := range 20 {
		if answer := a.post("users", padded(fmt.Sprintf("v-%d", i), 1)); answer.code != http.StatusCreated {
			failed++
			t.Errorf("create while others send nothing: got %d %s, want 201", answer.code, answer.body)
		}
	}
	for i, conn := range conns {
		if i%20 != 0 {
			continue
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(body), `"reason":"Timeout"`) {
			failed++
			t.Errorf("body that is never sent: got %d %s, want 408", res.StatusCode, body)
		}
	}
	tally.Attack(t, "slow bodies at the resource API", callers, failed)
}

// TestAttackManyCallers checks that a principal with 500 concurrent calls does not make others wait
// for all of them.
func TestAttackManyCallers(t *testing.T) {
	t.Parallel()
	const callers, limit, victims = 500, 8, 10
	a := startWith(t, kindstest.Options{MaxReads: limit, MaxWrites: limit})
	attacker := a.as(kindstest.AcmeToken)
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var served atomic.Int64
	var calls sync.WaitGroup
	stop, started := make(chan struct{}), make(chan struct{}, callers)
	for i := range callers {
		calls.Go(func() {
			started <- struct{}{}
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("a-%d-%d", i, n)
				res, err := client.Do(attacker.request(http.MethodPost, "users", padded(name, 1)))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				served.Add(1)
			}
		})
	}
	for range callers {
		<-started
	}
	late := 0
	for i := range victims {
		for start := served.Load(); served.Load() < start+limit; { // until the attacker's calls are being served
			a.get("users?limit=1").want(http.StatusOK)
		}
		before := served.Load()
		a.post(organizationPath("other")+"/users", padded(fmt.Sprintf("v-%d", i), 1)).want(http.StatusCreated)
		// In one queue for all, about 490 waiting calls of the attacker would be served first. With fair
		// shares it is a few, plus those served while this busy process sends the victim's call.
		if n := served.Load() - before; n > callers/2 {
			late++
			t.Errorf("calls of the attacker served before one of the victim: got %d, want at most %d", n, callers/2)
		}
	}
	close(stop)
	calls.Wait()
	tally.Attack(t, "500 concurrent callers of the resource API", victims, late)
}

func organizationPath(namespace string) string { return apiPath + "/namespaces/" + namespace }

// TestAttackYAML sends YAML bodies that would take long to decode or expand to a very large
// document.
func TestAttackYAML(t *testing.T) {
	t.Parallel()
	a := start(t)
	head := "apiVersion: cloud.vendor.io/v1alpha1\nkind: User\nmetadata:\n  name: yam\nspec:\n  email: y@example.com\n"
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	keys := strings.Builder{}
	for i := range 200_000 {
		fmt.Fprintf(&keys, "key%d: %d\n", i, i)
	}
	bodies := map[string]string{
		"aliases of aliases": head + laughs,
		"aliases of long text": head + "t: &t " + strings.Repeat("x", 100<<10) + "\nl: [" +
			strings.Repeat("*t, ", 50_000) + "*t]\n",
		"merge keys":          head + "m: &m {a: b}\n" + strings.Repeat("- {<<: *m}\n", 10),
		"many keys":           head + keys.String(),
		"deep flow":           head + "d: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "\n",
		"deep blocks":         head + "d:\n  " + strings.Repeat("- ", 100_000) + "x\n",
		"deep blocks, spaced": head + "d:\n  " + strings.Repeat("-  ", 100_000) + "x\n",
		"deep keys":           head + "d:\n  " + strings.Repeat("? ", 100_000) + "x\n",
	}
	long := 0
	for name, body := range bodies {
		for _, answer := range []reply{
			a.post("users", body, "Content-Type", yamlType),
			a.patch("users/yam?fieldManager=m", applyPatch, body),
			a.post("users/yam", body, "Content-Type", "text/plain"),
		} {
			if answer.code != http.StatusBadRequest && answer.code != http.StatusRequestEntityTooLarge {
				long++
				t.Errorf("%s: %s got %d %.300s, want 400 or 413", name, answer.request, answer.code, answer.body)
			}
			answer.failure()
		}
	}
	tally.Attack(t, "costly YAML", 3*len(bodies), long)
	shared := strings.Replace(head, "metadata:\n  name: yam\n",
		"metadata:\n  name: yam\n  labels: {a: &v b, c: *v}\n", 1)
	a.post("users", shared, "Content-Type", yamlType).want(http.StatusCreated).has("metadata.labels.c", "b")
}
