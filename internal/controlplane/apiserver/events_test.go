package apiserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
)

const coreEvents = "/api/v1/namespaces/acme/events"

// recordEvent records an event and waits until it is written.
func (a *api) recordEvent(namespace, name, version, reason string) {
	a.Helper()
	regarding := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: "u-1",
		ResourceVersion: version,
	}}
	a.server.Recorder().Record("User", regarding, false, reason, "it happened")
	path := "/api/v1/namespaces/" + namespace + "/events?fieldSelector=reason%3D" + reason +
		",involvedObject.resourceVersion%3D" + version
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(a.get(path).names()) == 0 {
		select {
		case <-tick.C:
		case <-a.Context().Done():
			a.Fatalf("timed out waiting for the event %s", reason)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.recordEvent("acme", "ann", "7", "Invited")
	a.recordEvent("acme", "ann", "8", "Invited")
	list := a.get(coreEvents).want(http.StatusOK)
	if names := list.names(); len(names) != 1 {
		t.Fatalf("recorded twice: got %v, want one event", names)
	}
	list.has("kind", "EventList", "items.0.count", "2", "items.0.reason", "Invited", "items.0.message", "it happened",
		"items.0.involvedObject.kind", "User", "items.0.involvedObject.name", "ann", "items.0.type", "Normal")
	name, _ := list.at("items.0.metadata.name").(string)
	const eventsV1Path = "/apis/events.k8s.io/v1/namespaces/acme/events"
	a.get(eventsV1Path+"/"+name).want(http.StatusOK).has("apiVersion", "events.k8s.io/v1", "kind", "Event", "note",
		"it happened", "regarding.name", "ann", "deprecatedCount", "2")
	if got := a.get(eventsV1Path + "?fieldSelector=regarding.name%3Dann").names(); len(got) != 1 {
		t.Errorf("by regarding.name: got %v, want one", got)
	}
	if got := a.get(coreEvents + "?fieldSelector=involvedObject.name%3Dbea").names(); len(got) != 0 {
		t.Errorf("of another object: got %v, want none", got)
	}
	a.get(coreEvents + "?fieldSelector=nothing%3Dbea").want(http.StatusBadRequest)
	a.get(coreEvents, "Accept", tableAccept).want(http.StatusOK).has("rows.0.cells.2", "Invited",
		"rows.0.cells.3", "User/ann")

	// Callers cannot write events, and events have a lease.
	a.post(coreEvents, `{"metadata":{"name":"x"}}`).want(http.StatusMethodNotAllowed)
	a.delete(coreEvents + "/" + name).want(http.StatusMethodNotAllowed)
	if lease := a.server.Lease(t, "/freshet/resources/events/acme/"+name); lease <= 0 || lease > time.Hour+time.Minute {
		t.Errorf("lease of the event: got %s, want an hour", lease)
	}
}

// TestEventsOfOthers checks that events of other organizations, and of kinds that the caller may
// not read, are hidden.
func TestEventsOfOthers(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.recordEvent("acme", "ann", "7", "Invited")
	a.recordEvent("other", "bea", "7", "Invited")
	name, _ := a.get(coreEvents).at("items.0.metadata.name").(string)
	boss := a.as(kindstest.AcmeToken)
	if got := boss.get(coreEvents).names(); len(got) != 1 {
		t.Errorf("events for the administrator of acme: got %v, want one", got)
	}
	boss.get("/api/v1/namespaces/other/events").want(http.StatusForbidden)
	boss.get("/api/v1/events").want(http.StatusForbidden)
	boss.get("/apis/events.k8s.io/v1/namespaces/other/events").want(http.StatusForbidden)

	// The number of remaining events would reveal events that the caller may not read.
	a.recordEvent("acme", "ann", "7", "Accepted")
	if left := boss.get(coreEvents + "?limit=1").want(http.StatusOK).at("metadata.remainingItemCount"); left != nil {
		t.Errorf("remainingItemCount: got %v, want none", left)
	}

	nobody := a.as(kindstest.GuestToken) // of acme, without roles
	if got := nobody.get(coreEvents).names(); len(got) != 0 {
		t.Errorf("events for a caller without roles: got %v, want none", got)
	}
	nobody.get(coreEvents + "/" + name).want(http.StatusNotFound)
	watched := nobody.get(coreEvents + "?watch=true&timeoutSeconds=1&resourceVersion=0").want(http.StatusOK)
	if text := string(watched.body); strings.Contains(text, "Invited") {
		t.Errorf("watch for a caller without roles: got %s, want no events", text)
	}
}
