package apiserver_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/kinds/kindstest"
	"freshet/test/tally"
)

func startWith(t *testing.T, opts kindstest.Options) *api {
	t.Helper()
	return &api{t, kindstest.Start(t, opts), kindstest.AdminToken}
}

// padded returns a user with an annotation of this size.
func padded(name string, size int) map[string]any {
	return map[string]any{
		"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "User",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{"padding": strings.Repeat("x", size)}},
		"spec":     map[string]any{"email": name + "@example.com"},
	}
}

// TestAttackBudgetByManyAtOnce checks that concurrent creates and updates cannot exceed an
// organization's budget.
func TestAttackBudgetByManyAtOnce(t *testing.T) {
	t.Parallel()
	const objects, bytes, callers, each = 20, 64 << 10, 20, 10
	a := startWith(t, kindstest.Options{Budget: budget.Limits{Objects: objects, Bytes: bytes}})
	var created, refused atomic.Int64
	var calls sync.WaitGroup
	for c := range callers {
		calls.Go(func() {
			for i := range each {
				name := fmt.Sprintf("u-%d-%d", c, i)
				answer := a.post("users", padded(name, 10))
				switch answer.code {
				case http.StatusCreated:
					created.Add(1)
					// A created object tries to grow.
					if grown := a.put("users/"+name, padded(name, 8<<10)); grown.code != http.StatusOK &&
						grown.code != http.StatusForbidden {
						t.Errorf("update with a larger object: got %d %s, want 200 or 403", grown.code, grown.body)
					}
				case http.StatusForbidden:
					refused.Add(1)
					if text := answer.failure().Message; !contains(text, "exceeded quota", "limited: ") {
						t.Errorf("got message %q, want the numbers in it", text)
					}
				default:
					t.Errorf("got %d %s, want 201 or 403", answer.code, answer.body)
				}
			}
		})
	}
	calls.Wait()
	used := a.server.Usage()["acme"]
	past := 0
	if created.Load() > objects || used.Objects > objects || used.Bytes > bytes {
		past = 1
	}
	if n := int64(len(a.get("users").names())); n != used.Objects || n != created.Load() {
		t.Errorf("got %d counted, %d created and %d stored objects, want equal numbers", used.Objects,
			created.Load(), n)
	}
	t.Logf("created %d, rejected %d, used %+v", created.Load(), refused.Load(), used)
	tally.Attack(t, "budget of an organization, by concurrent writes", callers*each, past)

	a.server.Restart()
	again := a.in(t)
	kindstest.Eventually(again, "users can be listed", func() bool { return again.get("users").code == http.StatusOK })
	again.post("users", padded("late", 60<<10)).want(http.StatusForbidden)
	if got := again.server.Usage()["acme"]; got != used {
		t.Errorf("after a restart: used %+v, want %+v", got, used)
	}
}

// TestBudgetIsReleased checks that deletions and smaller objects free budget immediately, and that
// each organization has its own budget.
func TestBudgetIsReleased(t *testing.T) {
	t.Parallel()
	a := startWith(t, kindstest.Options{Budget: budget.Limits{Objects: 2}})
	const elsewhere = apiPath + "/namespaces/other/rolebindings"
	binding := find("RoleBinding").object
	a.post("rolebindings", binding("one")).want(http.StatusCreated)
	a.post("rolebindings", binding("two")).want(http.StatusCreated)
	for range 20 {
		a.post("rolebindings", binding("three")).want(http.StatusForbidden)
		a.post(elsewhere, binding("other")).want(http.StatusCreated)
		a.delete("rolebindings/two").want(http.StatusOK)
		a.delete(elsewhere + "/other").want(http.StatusOK)
		a.post("rolebindings", binding("two")).want(http.StatusCreated)
	}
	// Apply creates objects, too.
	a.patch("users/four?fieldManager=m", applyPatch, padded("four", 1)).want(http.StatusForbidden)
}

// TestAttackOversizedObjects checks that an object that is too large gets 413 with the limit,
// whatever call makes it that large.
func TestAttackOversizedObjects(t *testing.T) {
	t.Parallel()
	a := start(t)
	// Annotations and texts have limits of their own; labels do not.
	labelled := func(object map[string]any, size int) map[string]any {
		labels := map[string]any{}
		for i := range max(size/100, 1) {
			labels[fmt.Sprintf("l%06d-%s", i, strings.Repeat("k", 30))] = strings.Repeat("v", 62)
		}
		object["metadata"].(map[string]any)["labels"] = labels
		return object
	}
	large := func(name string, size int) map[string]any { return labelled(padded(name, 1), size) }
	key := labelled(map[string]any{
		"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "APIKey", "metadata": map[string]any{"name": "key"},
		"spec": map[string]any{"instanceName": "i", "serviceAccountName": "robot"},
	}, 1<<20)
	a.post("users", large("grows", 10)).want(http.StatusCreated)
	attempts := map[string]func() reply{
		"create":                          func() reply { return a.post("users", large("new", 1<<20)) },
		"create larger than etcd accepts": func() reply { return a.post("users", large("new", 2_500_000)) },
		"create encrypted":                func() reply { return a.post("apikeys", key) },
		"update":                          func() reply { return a.put("users/grows", large("grows", 1<<20)) },
		"merge patch": func() reply {
			return a.patch("users/grows", mergePatch, large("grows", 1<<20))
		},
		"strategic patch": func() reply {
			return a.patch("users/grows", strategic, large("grows", 1<<20))
		},
		"apply": func() reply {
			return a.patch("users/grows?fieldManager=m&force=true", applyPatch, large("grows", 1<<20))
		},
		"apply a new one": func() reply {
			return a.patch("users/applied?fieldManager=m", applyPatch,
				large("applied", 1<<20))
		},
		"JSON patch": func() reply {
			return a.patch("users/grows", jsonPatch,
				[]any{map[string]any{
					"op": "add", "path": "/metadata/labels",
					"value": large("", 1<<20)["metadata"].(map[string]any)["labels"],
				}})
		},
		"body": func() reply { return a.post("users", large("new", 4<<20)) },
	}
	got, limit := 0, regexp.MustCompile(`limit is \d{6}`)
	for _, name := range slices.Sorted(maps.Keys(attempts)) {
		answer := attempts[name]()
		if answer.code != http.StatusRequestEntityTooLarge || !limit.MatchString(answer.failure().Message) {
			got++
			t.Errorf("%s: got %d %.300s, want 413 with the limit", name, answer.code, answer.body)
		}
	}
	if labels, _ := a.get("users/grows").want(http.StatusOK).at("metadata.labels").(map[string]any); len(labels) != 1 {
		t.Errorf("object has %d labels, want its original one", len(labels))
	}
	tally.Attack(t, "objects over the size limit", len(attempts), got)
}
