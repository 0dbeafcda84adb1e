package identity_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"freshet/test/tally"
)

const protection = "cloud.vendor.io/destroy-protected"

// references returns owner references that could cause a garbage collection: of missing
// owners, of an existing owner that the attacker may delete, of the right kind with another
// UID, with and without blockOwnerDeletion.
func references(w *world, live map[string]any) [][]any {
	w.Helper()
	dead := func(kind string) map[string]any {
		return map[string]any{
			"apiVersion": "cloud.vendor.io/v1alpha1", "kind": kind, "name": "gone",
			"uid": "00000000-0000-0000-0000-000000000001",
		}
	}
	blocking := dead("User")
	blocking["blockOwnerDeletion"], blocking["controller"] = true, true
	other := dead("MessagingInstance")
	other["name"] = "prod"
	return [][]any{
		{dead("User")},
		{blocking},
		{dead("MessagingInstance")},
		{other},
		{dead("ServiceAccount"), dead("User")},
		{live},
	}
}

// TestAttackOwnerReferences adds references of missing owners to protected objects with
// every kind of write, as an account that may change but not delete them.
func TestAttackOwnerReferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instance("prod")
	w.cluster("east", "prod")
	mallory := w.user("mallory", false)
	w.bind("mallory-operates", "org-operator", "mallory", nil)
	w.bind("mallory-accounts", "account-admin", "mallory", nil)
	w.post("users", object("pawn", map[string]any{"email": "pawn@example.org"})).want(201)
	pawn := w.get("users/pawn").want(200)
	live := map[string]any{
		"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "User", "name": "pawn",
		"uid": pawn.text("metadata.uid"),
	}

	attempts, successes := 0, 0
	for plural, name := range map[string]string{"messaginginstances": "prod", "messagingclusters": "east"} {
		path := plural + "/" + name
		protect := func(value string) {
			annotations := map[string]any{protection: value}
			w.patch(path, map[string]any{"metadata": map[string]any{"annotations": annotations}}).want(200)
		}
		protect("true")
		before := ownersOf(w, path)
		for _, refs := range references(w, live) {
			for _, c := range ownerWrites(w, path, refs) {
				attempts++
				c.as = mallory
				r := w.do(c)
				if after := ownersOf(w, path); !slices.Equal(after, before) {
					successes++
					t.Errorf("%s %s %s: got %d and owners %v, want owners %v", c.kind, c.method, path, r.status,
						after, before)
				}
			}
		}
		protect("false")
	}
	w.delete("users/pawn").want(200)
	w.eventuallyGone("users/pawn")
	for _, path := range []string{"messaginginstances/prod", "messagingclusters/east"} {
		if r := w.get(path).want(200); r.at("metadata.deletionTimestamp") != nil {
			successes++
			t.Errorf("%s is being deleted", path)
		}
	}
	tally.Attack(t, "delete by a reference to a missing owner", attempts, successes)
}

// ownerWrites returns every kind of write of an object's owners.
func ownerWrites(w *world, path string, refs []any) []call {
	w.Helper()
	var stored map[string]any
	if err := json.Unmarshal(w.get(path).want(200).body, &stored); err != nil {
		w.Fatal(err)
	}
	metadata, _ := stored["metadata"].(map[string]any)
	name := metadata["name"]
	metadata["ownerReferences"] = refs
	list := map[string]any{"metadata": map[string]any{"ownerReferences": refs}}
	applied := map[string]any{
		"apiVersion": stored["apiVersion"], "kind": stored["kind"],
		"metadata": map[string]any{"name": name, "ownerReferences": refs},
	}
	return []call{
		{method: http.MethodPatch, path: path, body: list, kind: "application/merge-patch+json"},
		{method: http.MethodPatch, path: path, body: list, kind: "application/strategic-merge-patch+json"},
		{
			method: http.MethodPatch, path: path,
			body: []any{map[string]any{"op": "add", "path": "/metadata/ownerReferences", "value": refs}},
			kind: "application/json-patch+json",
		},
		{
			method: http.MethodPatch, path: path + "?fieldManager=mallory&force=true", body: applied,
			kind: "application/apply-patch+yaml",
		},
		{method: http.MethodPut, path: path, body: stored},
		{method: http.MethodPost, path: path, body: stored},
		{method: http.MethodPatch, path: path + "/status", body: list, kind: "application/merge-patch+json"},
		{method: http.MethodPut, path: path + "/status", body: stored},
	}
}

// ownersOf returns an object's owner references as text.
func ownersOf(w *world, path string) []string {
	w.Helper()
	list, _ := w.get(path).want(200).at("metadata.ownerReferences").([]any)
	owners := []string{}
	for _, o := range list {
		owners = append(owners, fmt.Sprint(o))
	}
	return owners
}

// TestAttackOwnersOfTheProtected checks that a caller who may delete cannot bypass the
// protection of objects, or the check for remaining clusters, with an owner reference.
func TestAttackOwnersOfTheProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instance("prod")
	w.cluster("east", "prod")
	mallory := w.user("mallory", false)
	w.bind("mallory-owns", "instance-owner", "mallory", nil)
	dead := references(w, nil)[0]
	attempts, successes := 0, 0
	attempt := func(path, guard string) {
		t.Helper()
		before := ownersOf(w, path)
		for _, c := range ownerWrites(w, path, dead)[:6] {
			c.as = mallory
			attempts++
			w.do(c).want(409)
			if after := ownersOf(w, path); !slices.Equal(after, before) {
				successes++
				t.Errorf("%s (guard: %s): got owners %v, want %v", path, guard, after, before)
			}
		}
	}
	attempt("messaginginstances/prod", "it has clusters")
	w.patch("messagingclusters/east",
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{protection: "true"}}}).want(200)
	attempt("messagingclusters/east", "object is protected")
	tally.Attack(t, "bypass a delete guard with an owner reference", attempts, successes)

	// Without such a guard, the reference of a missing owner deletes the object.
	w.instance("empty")
	c := ownerWrites(w, "messaginginstances/empty", dead)[0]
	c.as = mallory
	w.do(c).want(200)
	w.eventuallyGone("messaginginstances/empty")
}
