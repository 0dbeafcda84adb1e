package apiserver_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestBooleansAreBooleans checks that other values than true and false are rejected, and have no
// effect.
func TestBooleansAreBooleans(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post(k.plural, k.object("ann")).want(http.StatusCreated)
	for _, name := range []string{"watch", "allowWatchBookmarks", "sendInitialEvents", "pretty"} {
		message := a.get(k.plural + "?" + name + "=maybe").want(http.StatusBadRequest).failure().Message
		if !strings.Contains(message, name) || !strings.Contains(message, "maybe") {
			t.Errorf("%s=maybe: got message %q, want the parameter and its value in it", name, message)
		}
	}
	a.call(http.MethodDelete, k.plural+"/ann?orphanDependents=2", nil).want(http.StatusBadRequest).failure()
	a.patch(k.plural+"/ann?fieldManager=me&force=yes", applyPatch,
		k.object("ann")).want(http.StatusBadRequest).failure()
	for _, value := range []string{"", "true", "True", "1", "false", "0"} {
		a.get(k.plural + "/ann?pretty=" + value).want(http.StatusOK)
	}
	a.get(k.plural+"/ann").want(http.StatusOK).has("metadata.deletionTimestamp", "<nil>")
}

// TestListedItemsHaveAKind checks docs/spec/resources.md#r16: items have kind and apiVersion.
func TestListedItemsHaveAKind(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		a.post(k.plural, k.object("one")).want(http.StatusCreated)
		for _, path := range []string{k.plural, k.plural + "?resourceVersion=0", k.plural + "?limit=1"} {
			a.get(path).want(http.StatusOK).has("items.0.kind", k.kind, "items.0.apiVersion",
				"cloud.vendor.io/v1alpha1")
		}
		yaml := a.get(k.plural, "Accept", "application/yaml").want(http.StatusOK)
		if !strings.Contains(string(yaml.body), "  kind: "+k.kind+"\n") {
			t.Errorf("items of %s in YAML: want a kind:\n%s", k.plural, yaml.body)
		}
	}
}
