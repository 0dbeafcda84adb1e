package apiserver_test

import (
	"net/http"
	"testing"
)

// TestDryRun checks that calls with dryRun=All return the same response as real ones but have no
// effect, and that other values are rejected and have no effect either.
func TestDryRun(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			item := k.plural + "/there"
			a.post(k.plural, k.object("there", `"labels":{"old":"yes"}`)).want(http.StatusCreated)
			before := string(a.get(item).body)
			version := a.get(k.plural).version()
			body := k.object("there", `"labels":{"new":"yes"}`)
			calls := map[string]func(q string) reply{
				"create": func(q string) reply { return a.post(k.plural+"?"+q, k.object("dry")) },
				"put":    func(q string) reply { return a.put(item+"?"+q, body) },
				"post":   func(q string) reply { return a.post(item+"?"+q, body) },
				"merge patch": func(q string) reply {
					return a.patch(item+"?"+q, mergePatch,
						`{"metadata":{"labels":{"new":"yes"}}}`)
				},
				"strategic patch": func(q string) reply {
					return a.patch(item+"?"+q, strategic,
						`{"metadata":{"labels":{"new":"yes"}}}`)
				},
				"json patch": func(q string) reply {
					return a.patch(item+"?"+q, jsonPatch, `[{"op":"add","path":"/metadata/labels/new","value":"yes"}]`)
				},
				"apply": func(q string) reply {
					return a.patch(item+"?fieldManager=me&force=true&"+q,
						applyPatch, body)
				},
				"apply, creating": func(q string) reply {
					return a.patch(k.plural+"/dry?fieldManager=me&"+q, applyPatch,
						k.object("dry"))
				},
				"status": func(q string) reply {
					return a.patch(item+"/status?"+q, mergePatch,
						`{"status":{"conditions":[{"type":"Dry","status":"True","reason":"Test","message":"",`+
							`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
				},
				"delete": func(q string) reply { return a.delete(item + "?" + q) },
				"delete by body": func(q string) reply {
					return a.call(http.MethodDelete, item+"?"+q,
						`{"gracePeriodSeconds":0}`)
				},
				"deletecollection": func(q string) reply {
					return a.delete(k.plural + "?" + q)
				},
			}
			for name, call := range calls {
				call("dryRun=All").want(http.StatusOK, http.StatusCreated, http.StatusAccepted)
				call("dryRun=All&dryRun=All").want(http.StatusOK, http.StatusCreated, http.StatusAccepted)
				for _, bad := range []string{
					"dryRun=all", "dryRun=", "dryRun=true", "dryRun=None",
					"dryRun=All&dryRun=Some", "dryRun=All%20",
				} {
					status := call(bad).want(http.StatusBadRequest, http.StatusUnprocessableEntity).failure()
					if status.Details == nil || len(status.Details.Causes) == 0 ||
						status.Details.Causes[0].Field != "dryRun" {
						t.Errorf("%s with %s: got message %q, want the cause dryRun", name, bad, status.Message)
					}
				}
			}
			a.call(http.MethodDelete, item, `{"dryRun":["All"]}`).want(http.StatusOK, http.StatusAccepted)
			a.call(http.MethodDelete, item, `{"dryRun":["Some"]}`).want(http.StatusUnprocessableEntity)
			if after := string(a.get(item).body); after != before {
				t.Errorf("object has changed from\n%s to\n%s", before, after)
			}
			a.get(k.plural + "/dry").want(http.StatusNotFound)
			if after := a.get(k.plural).version(); after != version {
				t.Errorf("version of the store has changed from %s to %s", version, after)
			}
		})
	}
}

func TestDryRunShowsWhatWouldBe(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("MessagingCluster")
	a.post(k.plural+"?dryRun=All", k.object("c")).want(http.StatusCreated).has("spec.broker.replicas", "1",
		"metadata.generation", "1", "metadata.resourceVersion", "<nil>")
	a.post(k.plural+"?dryRun=All", k.with(`{}`, "c")).want(http.StatusUnprocessableEntity)
	a.post(k.plural, k.object("c")).want(http.StatusCreated)
	a.post(k.plural+"?dryRun=All", k.object("c")).want(http.StatusConflict)
	a.patch(k.plural+"/c?dryRun=All", mergePatch, k.change).want(http.StatusOK).has("spec.broker.replicas", "3",
		"metadata.generation", "2")
	a.patch(k.plural+"/c?dryRun=All", mergePatch, `{"spec":{"location":"moon"}}`).want(http.StatusUnprocessableEntity)
	a.get(k.plural+"/c").has("spec.broker.replicas", "1", "metadata.generation", "1")
}
