package apiserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/internal/controlplane/kinds/kindstest"
)

const namespaces = "/api/v1/namespaces"

func TestOrganizationsAreCreatedByTheirFirstObject(t *testing.T) {
	t.Parallel()
	a := start(t)
	if got := a.get(namespaces).names(); len(got) != 0 {
		t.Fatalf("organizations of a new server: got %v, want none", got)
	}
	user := find("User")
	first := a.post("users", user.object("ann")).want(http.StatusCreated)
	if got := first.header.Get("Warning"); !contains(got,
		`organization \"acme\" did not exist and is created by this request`) {
		t.Errorf("warning for the first object: got %q, want the organization in it", got)
	}
	if got := a.post("users", user.object("bea")).want(http.StatusCreated).header.Get("Warning"); got != "" {
		t.Errorf("warning for the second object: got %q, want none", got)
	}
	a.post(apiPath+"/namespaces/other/users", user.object("ann")).want(http.StatusCreated)
	if got := a.get(namespaces).names(); !slices.Equal(got, []string{"acme", "other"}) {
		t.Errorf("organizations: got %v, want acme and other", got)
	}
	a.get(namespaces+"/acme").want(http.StatusOK).has("kind", "Namespace", "apiVersion", "v1", "status.phase", "Active")
	a.get(namespaces + "/absent").want(http.StatusNotFound).failure()

	// Neither a dry run nor a rejected object creates an organization.
	dry := a.post(apiPath+"/namespaces/typo/users?dryRun=All", user.object("ann")).want(http.StatusCreated)
	if !strings.Contains(dry.header.Get("Warning"), "typo") {
		t.Errorf("warning of a dry run: got %q, want the organization in it", dry.header.Get("Warning"))
	}
	a.post(apiPath+"/namespaces/typo/users", `{"metadata":{"name":"ann"},"spec":{}}`).want(
		http.StatusUnprocessableEntity)
	a.get(namespaces + "/typo").want(http.StatusNotFound)

	// Apply creates organizations, too.
	a.patch(apiPath+"/namespaces/applied/users/ann?fieldManager=me", applyPatch,
		user.apply("ann", user.spec)).want(http.StatusCreated)
	a.get(namespaces + "/applied").want(http.StatusOK)
}

func TestCreateAndDeleteOrganizations(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post(namespaces, `{"metadata":{"name":"empty"}}`).want(http.StatusCreated).has("metadata.name", "empty",
		"status.phase", "Active")
	a.post(namespaces, `{"metadata":{"name":"empty"}}`).want(http.StatusConflict)
	a.post(namespaces, `{"metadata":{"name":"not.a.label"}}`).want(http.StatusUnprocessableEntity)
	if got := a.post(apiPath+"/namespaces/empty/rolebindings",
		find("RoleBinding").object("ann")).want(http.StatusCreated).header.Get("Warning"); got != "" {
		t.Errorf("warning in an explicitly created organization: got %q, want none", got)
	}
	a.put(namespaces+"/empty", `{"metadata":{"name":"empty"}}`).want(http.StatusMethodNotAllowed)
	a.patch(namespaces+"/empty", mergePatch, `{}`).want(http.StatusMethodNotAllowed)
	a.delete(namespaces).want(http.StatusMethodNotAllowed)

	// An organization with objects cannot be deleted.
	status := a.delete(namespaces + "/empty").want(http.StatusConflict).failure()
	if !strings.Contains(status.Message, "rolebindings/ann") {
		t.Errorf("message: got %q, want the object in it", status.Message)
	}
	a.get(namespaces + "/empty").want(http.StatusOK)
	a.delete(apiPath + "/namespaces/empty/rolebindings/ann").want(http.StatusOK)
	a.delete(namespaces + "/empty").want(http.StatusOK)
	a.get(namespaces + "/empty").want(http.StatusNotFound)
}

// TestOrganizationsOfOthers checks that other organizations are hidden.
func TestOrganizationsOfOthers(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, name := range []string{"acme", "other"} {
		a.post(namespaces, `{"metadata":{"name":"`+name+`"}}`).want(http.StatusCreated)
	}
	boss := a.as(kindstest.AcmeToken)
	if got := boss.get(namespaces).names(); !slices.Equal(got, []string{"acme"}) {
		t.Errorf("organizations for an administrator of acme: got %v, want acme only", got)
	}
	if got := boss.get(namespaces + "?fieldSelector=metadata.name%3Dother").names(); len(got) != 0 {
		t.Errorf("by name: got %v, want none", got)
	}
	boss.get(namespaces + "/acme").want(http.StatusOK)
	there := boss.get(namespaces + "/other").want(http.StatusForbidden).failure().Message
	absent := boss.get(namespaces + "/absent").want(http.StatusForbidden).failure().Message
	if strings.ReplaceAll(there, "other", "X") != strings.ReplaceAll(absent, "absent", "X") {
		t.Errorf("messages for an existing and a missing organization differ: %q, %q", there, absent)
	}
	boss.post(namespaces, `{"metadata":{"name":"mine"}}`).want(http.StatusForbidden)
	boss.delete(namespaces + "/acme").want(http.StatusForbidden)
	boss.delete(namespaces + "/other").want(http.StatusForbidden)
	boss.post(apiPath+"/namespaces/mine/users", find("User").object("ann")).want(http.StatusForbidden)
	a.get(namespaces + "/mine").want(http.StatusNotFound)

	initial := boss.get(namespaces + "?watch=true&timeoutSeconds=1&sendInitialEvents=true" +
		"&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true").want(http.StatusOK)
	if text := string(initial.body); !strings.Contains(text, `"name":"acme"`) || strings.Contains(text, "other") {
		t.Errorf("watch: got %s, want acme only", text)
	}
}

func TestAutoCreateDisabled(t *testing.T) {
	t.Parallel()
	a := &api{t, kindstest.Start(t, kindstest.Options{RefuseNewOrganizations: true}), kindstest.AdminToken}
	user := find("User")
	status := a.post("users", user.object("ann")).want(http.StatusNotFound).failure()
	if status.Reason != "NotFound" ||
		!contains(status.Message, `"acme" does not exist`, "kubectl create namespace acme") {
		t.Errorf("message: got %q, want the command to create the organization in it", status.Message)
	}
	a.get("users/ann").want(http.StatusNotFound)
	a.post(namespaces, `{"metadata":{"name":"acme"}}`).want(http.StatusCreated)
	a.post("users", user.object("ann")).want(http.StatusCreated)
}

// TestOrganizationsOfEarlierVersions checks that organizations are found from their stored objects.
func TestOrganizationsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("users", find("User").object("ann")).want(http.StatusCreated)
	a.server.DeleteKey(t, "/freshet/resources/namespaces/acme")
	a.server.Restart()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for a.get("/readyz").code != http.StatusOK {
		<-tick.C
	}
	a.get(namespaces + "/acme").want(http.StatusOK)
}

// TestDiscoveryOfNamespaces checks the discovery that kubectl get ns uses.
func TestDiscoveryOfNamespaces(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.get("/api").want(http.StatusOK).has("versions.0", "v1")
	core := a.get("/api/v1").want(http.StatusOK)
	resources, _ := core.at("resources").([]any)
	found := map[string]string{}
	for _, r := range resources {
		verbs, _ := at(r, "verbs").([]any)
		words := make([]string, 0, len(verbs))
		for _, v := range verbs {
			words = append(words, v.(string))
		}
		found[at(r, "name").(string)] = strings.Join(words, " ")
	}
	want := map[string]string{"namespaces": "create delete get list watch", "events": "get list watch"}
	for name, verbs := range want {
		if found[name] != verbs {
			t.Errorf("verbs of %s: got %q, want %q", name, found[name], verbs)
		}
	}
	if len(found) != len(want) {
		t.Errorf("core/v1: got %v, want %v", found, want)
	}
	table := a.get(namespaces, "Accept", tableAccept).want(http.StatusOK)
	table.has("kind", "Table", "columnDefinitions.1.name", "Status")
}
