package apiserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"freshet/internal/controlplane/kinds/kindstest"
)

const settled = `{"conditions":[{"type":"Ready","status":"True","reason":"Test","message":"",` +
	`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}`

// TestEmptyStatusOnCreate checks that the response of a creation has an empty status, with and without
// dryRun (docs/spec/resources.md#r17).
func TestEmptyStatusOnCreate(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, name := range []string{"User", "MessagingCluster"} {
		k := find(name)
		for _, query := range []string{"?dryRun=All", ""} {
			created := a.post(k.plural+query, k.object("fresh")).want(http.StatusCreated)
			if status, ok := created.at("status").(map[string]any); !ok || len(status) > 0 {
				t.Errorf("%s%s: got status %v, want {}", k.plural, query, created.at("status"))
			}
		}
	}
}

// TestStatus checks that the status can be written on its own path only, and that this path changes
// nothing else.
func TestStatus(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			item := k.plural + "/s"
			withStatus := strings.TrimSuffix(k.object("s", `"labels":{"a":"b"}`), "}") + `,"status":` + settled + `}`
			first, at := "<nil>", "status.conditions.0.reason"
			if k.kind == "APIKey" {
				// Its own three conditions are written at creation, and stay unchanged.
				first, at = "Issued", "status.conditions.3.reason"
			}
			a.post(k.plural, withStatus).want(http.StatusCreated).has("status.conditions.0.reason", first)
			a.put(item, withStatus).want(http.StatusOK).has("status.conditions.0.reason", first)
			a.patch(item, mergePatch, `{"status":`+settled+`}`).want(http.StatusOK).has("status.conditions.0.reason",
				first)

			a.get(item+"/status").want(http.StatusOK).has("kind", k.kind, "metadata.name", "s")
			changedBody := strings.Replace(strings.Replace(withStatus, `"a":"b"`, `"a":"changed"`, 1), `"name":"s"`,
				`"name":"s","annotations":{"x":"y"},"finalizers":[]`, 1)
			changed := a.put(item+"/status", changedBody).want(http.StatusOK)
			changed.has(at, "Test", "metadata.labels.a", "b", "metadata.annotations", "<nil>",
				"metadata.generation", "1")
			if k.finalizer && changed.at("metadata.finalizers") == nil {
				t.Error("write of the status removed the finalizer")
			}
			if k.change != "" {
				a.patch(item+"/status", mergePatch, k.change).want(http.StatusOK).has("metadata.generation", "1")
			}
			a.put(item, k.object("s")).want(http.StatusOK).has(at, "Test")
			a.patch(item+"/status?fieldManager=me&force=true", applyPatch,
				`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"`+k.kind+`","metadata":{"name":"s"},"status":`+
					strings.ReplaceAll(settled, "Test", "Applied")+`}`).
				want(http.StatusOK).has(at, "Applied")
			for condition, where := range map[string]string{
				`{"status":"True"}`:              "status.conditions[0].type",
				`{"type":"Ready"}`:               "status.conditions[0].status",
				`{"type":"Ready","status":"Up"}`: "status.conditions[0].status",
			} {
				got := a.patch(item+"/status", mergePatch, `{"status":{"conditions":[`+condition+
					`]}}`).want(http.StatusUnprocessableEntity).causes()
				if !slices.Equal(got, []string{where}) {
					t.Errorf("condition %s: got causes %q, want %s", condition, got, where)
				}
			}
			a.put(k.plural+"/absent/status", k.object("absent")).want(http.StatusNotFound)
			a.patch(k.plural+"/absent/status?fieldManager=me", applyPatch, k.object("absent")).want(http.StatusNotFound)
			a.get(item+"/status", "Accept", tableAccept).want(http.StatusOK).has("kind", "Table")
		})
	}
}

func TestStatusIsSetByTheService(t *testing.T) {
	t.Parallel()
	a := start(t)
	boss := a.as(kindstest.AcmeToken)
	for _, k := range kinds {
		a.post(k.plural, k.object("s")).want(http.StatusCreated)
		boss.get(k.plural + "/s/status").want(http.StatusOK)
		boss.put(k.plural+"/s/status", k.object("s")).want(http.StatusForbidden).failure()
		boss.patch(k.plural+"/s/status", mergePatch, `{"status":{}}`).want(http.StatusForbidden).failure()
	}
}
