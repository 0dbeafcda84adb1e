package apiserver_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

func TestGracePeriod(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			item := k.plural + "/g"
			a.post(k.plural, k.object("g")).want(http.StatusCreated)
			for _, bad := range []string{"-1", "-9223372036854775808", "9223372036854775807", "2147483648"} {
				if got := a.delete(item + "?gracePeriodSeconds=" +
					bad).want(http.StatusUnprocessableEntity).causes(); !slices.Equal(got,
					[]string{"gracePeriodSeconds"}) {
					t.Errorf("grace period %s: got causes %q, want gracePeriodSeconds", bad, got)
				}
				a.call(http.MethodDelete, item, `{"gracePeriodSeconds":`+bad+`}`).want(http.StatusUnprocessableEntity)
				a.delete(k.plural + "?gracePeriodSeconds=" + bad).want(http.StatusUnprocessableEntity)
			}
			for _, bad := range []string{"x", "1.5", "99999999999999999999"} {
				a.delete(item + "?gracePeriodSeconds=" + bad).want(http.StatusBadRequest).failure()
			}
			a.get(item).want(http.StatusOK).has("metadata.deletionTimestamp", "<nil>")

			began := time.Now()
			dying := a.delete(item+"?gracePeriodSeconds=600").want(http.StatusOK, http.StatusAccepted)
			dying.has("metadata.deletionGracePeriodSeconds", "600")
			end, err := time.Parse(time.RFC3339, fmt.Sprint(dying.at("metadata.deletionTimestamp")))
			if err != nil || end.Before(began.Add(599*time.Second)) || end.After(time.Now().Add(601*time.Second)) {
				t.Errorf("deletionTimestamp: got %v (%v), want 600 seconds after %v", end, err, began)
			}
			// The object stays active and can be changed, and its deletion can be moved to an
			// earlier time but not to a later one.
			a.patch(item, mergePatch, `{"metadata":{"labels":{"still":"here"}}}`).want(http.StatusOK)
			a.delete(item+"?gracePeriodSeconds=900").want(http.StatusOK, http.StatusAccepted)
			a.get(item).want(http.StatusOK).has("metadata.deletionGracePeriodSeconds", "600",
				"metadata.labels.still", "here")
			a.delete(item+"?gracePeriodSeconds=300").want(http.StatusOK, http.StatusAccepted)
			a.get(item).want(http.StatusOK).has("metadata.deletionGracePeriodSeconds", "300")
			a.delete(item+"?gracePeriodSeconds=0").want(http.StatusOK, http.StatusAccepted)
			if !k.finalizer {
				a.get(item).want(http.StatusNotFound)
				return
			}
			a.get(item).want(http.StatusOK).has("metadata.deletionGracePeriodSeconds", "0")
			a.patch(item, mergePatch, `{"metadata":{"finalizers":[]}}`).want(http.StatusOK)
			a.get(item).want(http.StatusNotFound)
		})
	}
}

func TestDeletionAtOnceIsTheDefault(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("RoleBinding") // has no finalizer
	for _, q := range []string{"", "?gracePeriodSeconds=0", "?propagationPolicy=Background"} {
		a.post(k.plural, k.object("r")).want(http.StatusCreated)
		a.delete(k.plural+"/r"+q).want(http.StatusOK).has("kind", "Status", "status", "Success", "details.name", "r")
		a.get(k.plural + "/r").want(http.StatusNotFound)
	}
}

func TestPropagation(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("RoleBinding")
	for query, finalizers := range map[string]string{
		"propagationPolicy=Foreground": "[foregroundDeletion]",
		"propagationPolicy=Orphan":     "[orphan]",
		"orphanDependents=true":        "[orphan]",
	} {
		a.post(k.plural, k.object("r")).want(http.StatusCreated)
		a.delete(k.plural+"/r?"+query).want(http.StatusOK).has("metadata.finalizers", finalizers)
		a.patch(k.plural+"/r", mergePatch, `{"metadata":{"finalizers":null}}`).want(http.StatusOK)
		a.get(k.plural + "/r").want(http.StatusNotFound)
	}
	a.post(k.plural, k.object("r")).want(http.StatusCreated)
	for _, both := range []string{"orphanDependents=true", "orphanDependents=false"} {
		for _, policy := range []string{"Orphan", "Background", "Foreground"} {
			a.delete(k.plural + "/r?propagationPolicy=" + policy + "&" +
				both).want(http.StatusUnprocessableEntity).failure()
			a.delete(k.plural + "?propagationPolicy=" + policy + "&" +
				both).want(http.StatusUnprocessableEntity).failure()
		}
	}
	a.call(http.MethodDelete, k.plural+"/r", `{"propagationPolicy":"Orphan","orphanDependents":false}`).want(
		http.StatusUnprocessableEntity)
	if got := a.delete(k.plural + "/r?propagationPolicy=Gently").want(
		http.StatusUnprocessableEntity).causes(); !slices.Equal(got, []string{"propagationPolicy"}) {
		t.Errorf("unknown policy: got causes %q, want propagationPolicy", got)
	}
	a.get(k.plural+"/r").want(http.StatusOK).has("metadata.deletionTimestamp", "<nil>")
}

func TestDeleteBodies(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("RoleBinding")
	created := a.post(k.plural, k.object("r")).want(http.StatusCreated)
	send := func(contentType, body string) reply {
		return a.call(http.MethodDelete, k.plural+"/r", body, "Content-Type", contentType)
	}
	for _, body := range []string{
		"{", "[]", `"x"`, `{"kind":"User","apiVersion":"cloud.vendor.io/v1alpha1"}`,
		`{"gracePeriodSeconds":"soon"}`, "\x00",
	} {
		send(jsonType, body).want(http.StatusBadRequest).failure()
	}
	send(jsonType, `{"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`).want(http.StatusConflict).has(
		"reason", "Conflict")
	send(jsonType, `{"preconditions":{"resourceVersion":"1"}}`).want(http.StatusConflict)
	send(jsonType, `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`).want(http.StatusOK)
	send(jsonType, `{"kind":"DeleteOptions","apiVersion":"cloud.vendor.io/v1alpha1","dryRun":["All"]}`).want(
		http.StatusOK)
	send(yamlType, "kind: DeleteOptions\napiVersion: v1\ndryRun: [All]\n").want(http.StatusOK)
	a.delete(k.plural+"/r?ignoreStoreReadErrorWithClusterBreakingPotential=true").want(http.StatusForbidden,
		http.StatusUnprocessableEntity)
	a.get(k.plural + "/r").want(http.StatusOK)
	send(jsonType, fmt.Sprintf(`{"preconditions":{"uid":%q,"resourceVersion":%q}}`, created.at("metadata.uid"),
		created.version())).want(http.StatusOK)
	a.get(k.plural + "/r").want(http.StatusNotFound)
}

// TestDeleteOptionsFromBodyAndQuery checks that the query also applies to a call with a body.
func TestDeleteOptionsFromBodyAndQuery(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("RoleBinding")
	created := a.post(k.plural, k.object("r")).want(http.StatusCreated)
	for _, path := range []string{k.plural + "/r", k.plural} {
		send := func(query, body string) reply { return a.call(http.MethodDelete, path+"?"+query, body) }
		send("dryRun=All", `{}`).want(http.StatusOK)
		send("dryRun=All", `{"propagationPolicy":"Foreground"}`).want(http.StatusOK)
		send("dryRun=Some", `{}`).want(http.StatusUnprocessableEntity).has("details.causes.0.field", "dryRun")
		send("dryRun=Some", `{"dryRun":["All"]}`).want(http.StatusUnprocessableEntity).has("details.causes.0.field",
			"dryRun")
		send("gracePeriodSeconds=-1", `{}`).want(http.StatusUnprocessableEntity).has("details.causes.0.field",
			"gracePeriodSeconds")
		send("gracePeriodSeconds=5", `{"gracePeriodSeconds":6}`).want(http.StatusUnprocessableEntity).has(
			"details.causes.0.field", "gracePeriodSeconds")
		send("propagationPolicy=Orphan", `{"orphanDependents":true}`).want(http.StatusUnprocessableEntity)
		send("propagationPolicy=Orphan", `{"propagationPolicy":"Background"}`).want(http.StatusUnprocessableEntity).has(
			"details.causes.0.field", "propagationPolicy")
		send("gracePeriodSeconds=soon", `{}`).want(http.StatusBadRequest)
		a.get(k.plural+"/r").want(http.StatusOK).has("metadata.resourceVersion", created.version())
	}
	a.call(http.MethodDelete, k.plural+"/r?gracePeriodSeconds=60", `{}`).want(http.StatusOK,
		http.StatusAccepted).has("metadata.deletionGracePeriodSeconds", "60")
	a.call(http.MethodDelete, k.plural+"/r?propagationPolicy=Foreground",
		`{"gracePeriodSeconds":0}`).want(http.StatusOK, http.StatusAccepted).has("metadata.finalizers",
		"[foregroundDeletion]")
}

func TestDeleteCollection(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("RoleBinding")
	fill := func() {
		for name, tier := range map[string]string{"a1": "a", "a2": "a", "b1": "b"} {
			a.post(k.plural, k.object(name, `"labels":{"tier":"`+tier+`"}`)).want(http.StatusCreated,
				http.StatusConflict)
		}
		a.post(apiPath+"/namespaces/other/"+k.plural, k.object("theirs")).want(http.StatusCreated, http.StatusConflict)
	}
	tests := map[string]struct {
		query string
		left  []string
	}{
		"by label":          {"labelSelector=tier%3Da", []string{"b1"}},
		"by set":            {"labelSelector=tier+in+(b,c)", []string{"a1", "a2"}},
		"by name":           {"fieldSelector=metadata.name%3Da1", []string{"a2", "b1"}},
		"by field":          {"fieldSelector=spec.roleRef.name%3Dnothing", []string{"a1", "a2", "b1"}},
		"by both":           {"labelSelector=tier%3Da&fieldSelector=metadata.name!%3Da1", []string{"a1", "b1"}},
		"everything":        {"", []string{}},
		"nothing, by label": {"labelSelector=tier%3Dz", []string{"a1", "a2", "b1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := a.in(t)
			fill()
			a.delete(k.plural+"?"+tc.query).want(http.StatusOK).has("kind", k.kind+"List")
			if got := a.get(k.plural).names(); !slices.Equal(got, tc.left) {
				t.Errorf("remaining objects: got %q, want %q", got, tc.left)
			}
			if got := a.get(apiPath + "/namespaces/other/" + k.plural).names(); !slices.Equal(got, []string{"theirs"}) {
				t.Errorf("objects of the other organization: got %q, want theirs", got)
			}
		})
	}
	for _, bad := range []string{"labelSelector=!!", "fieldSelector=nope%3Dx", "limit=x", "propagationPolicy=Gently"} {
		fill()
		a.delete(k.plural+"?"+bad).want(http.StatusBadRequest, http.StatusUnprocessableEntity).failure()
		if got := a.get(k.plural).names(); len(got) != 3 {
			t.Errorf("%s is rejected but deletes: got %q, want three objects", bad, got)
		}
	}
}

func TestProtectedObjectsStay(t *testing.T) {
	t.Parallel()
	a := start(t)
	protected := `"annotations":{"cloud.vendor.io/destroy-protected":"true"}`
	for _, name := range []string{"MessagingInstance", "MessagingCluster"} {
		k := find(name)
		item := k.plural + "/p"
		a.post(k.plural, k.object("p", protected)).want(http.StatusCreated)
		for _, q := range []string{"", "?gracePeriodSeconds=0", "?propagationPolicy=Foreground", "?dryRun=All"} {
			a.delete(item+q).want(http.StatusConflict).has("reason", "Conflict", "details.name", "p")
		}
		a.get(item).want(http.StatusOK).has("metadata.deletionTimestamp", "<nil>")
		a.delete(k.plural).want(http.StatusConflict)
		a.patch(item, mergePatch, `{"metadata":{"annotations":{"cloud.vendor.io/destroy-protected":"false"}}}`).want(
			http.StatusOK)
		a.delete(item).want(http.StatusOK)
	}
}

func TestInstancesWithClustersStay(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("messaginginstances", find("MessagingInstance").object("i")).want(http.StatusCreated)
	for _, name := range []string{"one", "two"} {
		a.post("messagingclusters", find("MessagingCluster").object(name)).want(http.StatusCreated)
	}
	for _, q := range []string{
		"", "?propagationPolicy=Background", "?propagationPolicy=Orphan",
		"?gracePeriodSeconds=5",
	} {
		message := a.delete("messaginginstances/i" + q).want(http.StatusConflict).failure().Message
		if !contains(message, "one", "two", "Foreground") {
			t.Errorf("message: got %q, want the clusters and Foreground in it", message)
		}
	}
	a.delete("messaginginstances/i?propagationPolicy=Foreground").want(http.StatusOK, http.StatusAccepted).
		has("metadata.finalizers", "[messaginginstance.finalizers.cloud.vendor.io foregroundDeletion]")
}
