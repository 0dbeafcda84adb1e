package apiserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestReplaceWithAnyContentType checks that a POST on an item accepts any content type
// (docs/spec/resources.md#r2).
func TestReplaceWithAnyContentType(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	created := a.post("users", k.object("ann")).want(http.StatusCreated)
	binary := a.get("users/ann", "Accept", protobufType).want(http.StatusOK).body
	inYAML := func(email string) string {
		return "# a person\nmetadata:\n  name: ann\nspec:\n  email: " + email + "\n"
	}
	for i, contentType := range []string{
		jsonType, yamlType, "application/json; charset=utf-8", "APPLICATION/JSON", "text/plain", "text/yaml",
		"application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x", "application/octet-stream", mergePatch, applyPatch, "nonsense",
		"text/html; ===", "",
	} {
		email := string(rune('a'+i)) + "@example.com"
		body := inYAML(email)
		if strings.Contains(strings.ToLower(contentType), jsonType) {
			body = k.with(`{"email":"`+email+`"}`, "ann")
		}
		a.post("users/ann", body, "Content-Type", contentType).want(http.StatusOK).has("spec.email", email)
		a.post("users/ann", " \r\n"+k.with(`{"email":"j`+email+`"}`, "ann"), "Content-Type",
			contentType).want(http.StatusOK).has("spec.email", "j"+email)
		if contentType != jsonType && contentType != yamlType &&
			!strings.Contains(strings.ToLower(contentType), "json;") && contentType != "APPLICATION/JSON" {
			// The body contains an old resourceVersion.
			a.post("users/ann", binary, "Content-Type", contentType).want(http.StatusConflict).has("reason", "Conflict")
		}
	}
	a.post("users/ann", binary, "Content-Type", protobufType).want(http.StatusConflict)
	a.get("users/ann").has("metadata.uid", created.at("metadata.uid").(string))

	a.put("users/ann", inYAML("put@example.com"), "Content-Type", yamlType).want(http.StatusOK).has("spec.email",
		"put@example.com")
	a.put("users/ann", inYAML("put@example.com"), "Content-Type", "text/plain").want(http.StatusUnsupportedMediaType)
	current := a.get("users/ann", "Accept", protobufType).body
	a.put("users/ann", current, "Content-Type", protobufType).want(http.StatusOK)
	a.post("users/ann", current, "Content-Type", "text/plain").want(http.StatusOK)
}

func TestReplaceByPostIsForItemsOnly(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users/", k.object("ann")).want(http.StatusCreated, http.StatusNotFound, http.StatusMovedPermanently)
	a.post("users", k.object("bob")).want(http.StatusCreated)
	a.post("users/bob/", k.object("bob")).want(http.StatusOK, http.StatusNotFound)
	a.post("users/bob/status", k.object("bob")).want(http.StatusMethodNotAllowed)
	a.post("users/bob/other", k.object("bob")).want(http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusForbidden)
	a.post("users/bob", "").want(http.StatusBadRequest).failure()
	a.post("users/bob", nil).want(http.StatusBadRequest).failure()
	a.post("users/bob", "\x00\x01").want(http.StatusBadRequest).failure()
	a.post("users/bob", "k8s\x00junk", "Content-Type", "text/plain").want(http.StatusBadRequest).failure()
	a.post("users/bob", strings.Repeat("x: y\n", 1<<19)).want(http.StatusRequestEntityTooLarge).failure()
}

func TestReplaceVersions(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	first := a.post("users", k.object("ann")).want(http.StatusCreated)
	second := a.put("users/ann", k.object("ann", `"labels":{"n":"2"}`)).want(http.StatusOK) // unconditional
	for _, method := range []string{http.MethodPut, http.MethodPost} {
		a.call(method, "users/ann", k.object("ann", `"resourceVersion":"`+first.version()+`"`)).want(
			http.StatusConflict).has("reason", "Conflict")
	}
	third := a.put("users/ann", k.object("ann", `"labels":{"n":"3"}`, `"resourceVersion":"`+second.version()+`"`)).want(
		http.StatusOK)
	same := a.put("users/ann", k.object("ann", `"labels":{"n":"3"}`, `"resourceVersion":"`+third.version()+`"`)).want(
		http.StatusOK)
	if same.version() != third.version() {
		t.Errorf("replace without a change: got version %s, want %s", same.version(), third.version())
	}
	a.put("users/ann", k.object("bob")).want(http.StatusBadRequest).failure()
	a.put("users/ann", k.object("ann", `"uid":"00000000-0000-0000-0000-000000000000"`)).want(http.StatusConflict)
	a.put("users/ann", strings.Replace(k.object("ann"), `"User"`, `"APIKey"`, 1)).want(http.StatusBadRequest).failure()
	a.put("users/ann", strings.Replace(k.object("ann"), `v1alpha1`, `v1`, 1)).want(http.StatusBadRequest).failure()
}

// TestReplaceKeepsTheFinalizer checks that a body without finalizers does not remove the kind's
// finalizer, without which the object would later be deleted without its teardown.
func TestReplaceKeepsTheFinalizer(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		if !k.finalizer {
			continue
		}
		own := strings.ToLower(k.kind) + ".finalizers.cloud.vendor.io"
		item := k.plural + "/f"
		a.post(k.plural, k.object("f", `"finalizers":["example.com/hold"]`)).want(http.StatusCreated).has(
			"metadata.finalizers", "[example.com/hold "+own+"]")
		a.put(item, k.object("f")).want(http.StatusOK).has("metadata.finalizers", "["+own+"]")
		a.patch(item, mergePatch, `{"metadata":{"finalizers":[]}}`).want(http.StatusOK).has("metadata.finalizers",
			"["+own+"]")
		a.patch(item+"?fieldManager=me", applyPatch, k.object("f", `"finalizers":["example.com/hold"]`)).want(
			http.StatusOK)
		a.patch(item+"?fieldManager=me", applyPatch, k.object("f")).want(http.StatusOK).has("metadata.finalizers",
			"["+own+"]")
		a.delete(item).want(http.StatusOK)
		if !k.deletedImmediately {
			a.patch(item, mergePatch, `{"metadata":{"finalizers":[]}}`).want(http.StatusOK)
		}
		a.get(item).want(http.StatusNotFound)
	}
}

func TestImmutableMetadata(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	created := a.post("users", k.object("ann")).want(http.StatusCreated)
	after := a.patch("users/ann", mergePatch,
		`{"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z","selfLink":"/x","generation":99,`+
			`"deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":3}}`)
	switch after.code {
	case http.StatusOK:
		after.has("metadata.creationTimestamp", created.at("metadata.creationTimestamp").(string),
			"metadata.deletionTimestamp", "<nil>", "metadata.generation", "1")
	case http.StatusUnprocessableEntity:
		if causes := after.causes(); slices.Contains(causes, "spec.email") {
			t.Errorf("got causes %q, want only metadata", causes)
		}
	default:
		t.Errorf("got %d: %s, want 200 or 422", after.code, after.body)
	}
	for _, namespace := range []string{"other", "ACME"} {
		a.patch("users/ann", mergePatch, `{"metadata":{"namespace":"`+namespace+
			`"}}`).want(http.StatusBadRequest).failure()
	}
	for _, labels := range []string{
		`{"bad key!":"x"}`, `{"a":"bad value!"}`,
		`{"a":"` + strings.Repeat("x", 64) + `"}`,
	} {
		refused := a.patch("users/ann", mergePatch, `{"metadata":{"labels":`+labels+
			`}}`).want(http.StatusUnprocessableEntity)
		if got := slices.Compact(refused.causes()); !slices.Equal(got, []string{"metadata.labels"}) {
			t.Errorf("labels %s: got causes %q, want metadata.labels", labels, got)
		}
	}
}
