package apiserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/test/tally"
)

// fillStore creates users, starting with the given number, until the store rejects even small ones,
// and returns how many exist. Recently admitted writes count twice for half a second, and
// compaction may free space for as long, so the store counts as full only after it has rejected
// writes for longer.
func (a *api) fillStore(created int) int {
	a.Helper()
	const sure = 2 * time.Second
	stored := time.Now()
	for size := 200 << 10; created < 2000; {
		answer := a.post("users", padded(fmt.Sprintf("fill-%d", created), size))
		if answer.code != http.StatusServiceUnavailable {
			answer.want(http.StatusCreated)
			created, stored = created+1, time.Now()
			continue
		}
		status := answer.failure()
		if answer.header.Get("Retry-After") == "" || status.Reason != "ServiceUnavailable" ||
			!contains(status.Message, "nearly full", "bytes") {
			a.Errorf("rejection: got %v %s, want 503 with Retry-After and the reason", answer.header, answer.body)
		}
		if time.Since(stored) > sure && contains(string(a.get("/readyz").body), "nearly full") {
			return created
		}
		size = max(size/2, 32<<10)
	}
	a.Fatal("the store never rejected a write")
	return 0
}

// TestFaultFullStore fills the resource store. Writes that add to it must be rejected early, writes
// that remove something must succeed, and deletions must make the store usable again. A server that
// starts with a full store must be ready.
func TestFaultFullStore(t *testing.T) {
	t.Parallel()
	const quota = 24 << 20
	a := startWith(t, kindstest.Options{EtcdQuota: quota})
	a.post("apikeys", find("APIKey").object("key")).want(http.StatusCreated)
	a.post("rolebindings", find("RoleBinding").object("binding")).want(http.StatusCreated)
	fault := tally.Fault{Name: "the quota of the resource store is full", Injected: 2}
	created := a.fillStore(0)
	fault.Checked = created

	wrong := func(code int, answer reply) {
		t.Helper()
		if answer.code != code {
			fault.Wrong++
			t.Errorf("%s: got %d %.300s, want %d", answer.request, answer.code, answer.body, code)
		}
	}
	check := func() {
		t.Helper()
		wrong(http.StatusServiceUnavailable, a.post("users", padded("more", 200<<10)))
		wrong(http.StatusServiceUnavailable, a.put("users/fill-1", padded("fill-1", 250<<10)))
		wrong(http.StatusServiceUnavailable,
			a.patch("users/applied?fieldManager=m", applyPatch, padded("applied", 200<<10)))
		wrong(http.StatusOK, a.get("users/fill-1"))
		// Compaction may free space for a while, so readiness is checked while the store rejects
		// writes.
		kindstest.Eventually(a, "writes are rejected and the server is ready", func() bool {
			refused := a.post("users",
				padded(fmt.Sprintf("ready-%d", time.Now().UnixNano()), 200<<10)).code == http.StatusServiceUnavailable
			ready := a.get("/readyz")
			return refused && ready.code == http.StatusOK && contains(string(ready.body), "nearly full")
		})
	}
	check()
	wrong(http.StatusOK, a.patch("apikeys/key", mergePatch, `{"spec":{"revoke":true}}`))
	wrong(http.StatusOK, a.delete("rolebindings/binding"))
	own, err := versioned.NewForConfig(a.server.Loopback())
	if err != nil {
		t.Fatal(err)
	}
	users := own.CloudV1alpha1().Users("acme")
	user, err := users.Get(t.Context(), "fill-2", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user.Status.Conditions = []v1alpha1.Condition{{
		Type: "Ready", Status: "True", Reason: "Test",
		Message: strings.Repeat("m", 1000),
	}}
	if _, err := users.UpdateStatus(t.Context(), user, metav1.UpdateOptions{}); err != nil {
		fault.Wrong++
		t.Errorf("write of the service itself: %v", err)
	}

	a.server.Restart()
	kindstest.Eventually(a, "the server is ready", func() bool { return a.get("/readyz").code == http.StatusOK })
	a.get("apikeys/key").want(http.StatusOK).has("spec.revoke", "true")
	created = a.fillStore(created)
	fault.Checked = created
	check()

	for i := range created {
		if i%2 == 0 {
			wrong(http.StatusOK, a.delete(fmt.Sprintf("users/fill-%d", i)))
		}
	}
	began := time.Now()
	kindstest.Eventually(a, "the store has space",
		func() bool { return a.post("users", padded("after", 200<<10)).code == http.StatusCreated })
	fault.Recovery = time.Since(began)
	for i := range created {
		if i%2 == 1 && a.get(fmt.Sprintf("users/fill-%d", i)).code != http.StatusOK {
			fault.Lost++
		}
	}
	kindstest.Eventually(a, "the server reports no problem",
		func() bool { return strings.TrimSpace(string(a.get("/readyz").body)) == "ok" })
	fault.Record(t)
}
