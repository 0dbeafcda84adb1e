package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"freshet/api/generated/clientset/versioned"
)

// apply returns the body of an apply patch.
func (k kind) apply(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":%q,"metadata":{"name":%q},"spec":%s}`,
		k.kind, name, spec)
}

// TestApplyWithAnUnknownField checks that the error names the unknown field, at every level and
// whether or not the object exists.
func TestApplyWithAnUnknownField(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			a.post(k.plural, k.object("there")).want(http.StatusCreated)
			for _, name := range []string{"there", "absent"} {
				var spec map[string]any
				if err := json.Unmarshal([]byte(k.spec), &spec); err != nil {
					t.Fatal(err)
				}
				spec["surplus"] = 1
				inSpec, _ := json.Marshal(spec)
				for field, body := range map[string]string{
					"surplus":  k.apply(name, string(inSpec)),
					"surplus2": strings.Replace(k.apply(name, k.spec), `"spec":`, `"surplus2":true,"spec":`, 1),
					"surplus3": strings.Replace(k.apply(name, k.spec), `"metadata":{`, `"metadata":{"surplus3":{},`, 1),
				} {
					status := a.patch(k.plural+"/"+name+"?fieldManager=me", applyPatch,
						body).want(http.StatusBadRequest, http.StatusUnprocessableEntity).failure()
					if !strings.Contains(status.Message, field) {
						t.Errorf("message does not contain %s: %s", field, status.Message)
					}
				}
			}
			a.get(k.plural + "/absent").want(http.StatusNotFound)
		})
	}
}

func TestApplyOptions(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	body := k.apply("ann", k.spec)
	a.patch("users/ann", applyPatch, body).want(http.StatusUnprocessableEntity).has("details.causes.0.field",
		"fieldManager")
	a.patch("users/ann?fieldManager=one", applyPatch,
		body).want(http.StatusCreated).has("metadata.managedFields.0.manager", "one",
		"metadata.managedFields.0.operation", "Apply")
	a.patch("users/ann?fieldManager=one", applyPatch, body).want(http.StatusOK)

	other := strings.ReplaceAll(body, "ada@", "eve@")
	conflict := a.patch("users/ann?fieldManager=two", applyPatch, other).want(http.StatusConflict)
	conflict.has("reason", "Conflict", "details.causes.0.reason", "FieldManagerConflict", "details.causes.0.field",
		".spec.email")
	if !strings.Contains(conflict.failure().Message, "one") {
		t.Errorf("conflict does not contain the other manager: %s", conflict.body)
	}
	a.patch("users/ann?fieldManager=two&force=true", applyPatch, other).want(http.StatusOK).has("spec.email",
		"eve@example.com", "metadata.managedFields.0.manager", "two")

	for _, contentType := range []string{mergePatch, strategic} {
		for _, force := range []string{"true", "false", "1"} {
			a.patch("users/ann?force="+force, contentType, `{}`).want(http.StatusUnprocessableEntity).has(
				"details.causes.0.field", "force")
		}
	}
	a.patch("users/ann?force=true", jsonPatch, `[]`).want(http.StatusUnprocessableEntity).has("details.causes.0.field",
		"force")
	a.patch("users/ann?fieldManager=two", applyPatch,
		strings.Replace(other, `"metadata":{`, `"metadata":{"managedFields":[],`, 1)).want(http.StatusBadRequest)
	a.patch("users/ann?fieldManager=two", applyPatch, "a: [b").want(http.StatusBadRequest).failure()
	a.patch("users/ann?fieldManager=two", applyPatch, "a: &a [*a]").want(http.StatusBadRequest).failure()
	a.patch("users/bob?fieldManager=two", applyPatch, body).want(http.StatusBadRequest).failure() // another name
}

func TestFieldManagers(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("ann")).want(http.StatusCreated)
	send := map[string]func(q string) reply{
		"create":  func(q string) reply { return a.post("users?dryRun=All&"+q, k.object("new")) },
		"replace": func(q string) reply { return a.put("users/ann?"+q, k.object("ann")) },
		"post":    func(q string) reply { return a.post("users/ann?"+q, k.object("ann")) },
		"merge":   func(q string) reply { return a.patch("users/ann?"+q, mergePatch, `{}`) },
		"apply": func(q string) reply {
			return a.patch("users/ann?force=true&"+q, applyPatch, k.apply("ann", k.spec))
		},
		"status": func(q string) reply { return a.patch("users/ann/status?"+q, mergePatch, `{}`) },
	}
	for name, do := range send {
		do("fieldManager="+strings.Repeat("m", 128)).want(http.StatusOK, http.StatusCreated)
		do("fieldManager=caf%C3%A9").want(http.StatusOK, http.StatusCreated)
		for _, bad := range []string{strings.Repeat("m", 129), "a%07b", "a%0Ab", "%E2%80%8B", "%FF"} {
			status := do("fieldManager=" + bad).want(http.StatusUnprocessableEntity).failure()
			if status.Details == nil || len(status.Details.Causes) == 0 ||
				status.Details.Causes[0].Field != "fieldManager" {
				t.Errorf("%s with manager %s: got message %q, want the cause fieldManager", name, bad, status.Message)
			}
		}
	}
}

// TestManyWritersOfOneObject checks that concurrent writes without a resourceVersion all succeed
// and none is lost.
func TestManyWritersOfOneObject(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("users", find("User").object("ann", `"labels":{"a":"b"}`)).want(http.StatusCreated)
	const writers = 16
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for _, res := range []reply{
				a.patch("users/ann", mergePatch, fmt.Sprintf(`{"metadata":{"labels":{"m%d":"x"}}}`, i)),
				a.patch("users/ann", strategic, fmt.Sprintf(`{"metadata":{"labels":{"s%d":"x"}}}`, i)),
				a.patch("users/ann", jsonPatch,
					fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/j%d","value":"x"}]`, i)),
				a.patch(fmt.Sprintf("users/ann?fieldManager=m%d", i), applyPatch,
					fmt.Sprintf(`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"User",`+
						`"metadata":{"name":"ann","labels":{"a%d":"x"}}}`, i)),
				a.patch("users/ann/status", mergePatch, `{"status":`+settled+`}`),
			} {
				if res.code != http.StatusOK {
					t.Errorf("%s: got %d: %s, want 200", res.request, res.code, res.body)
				}
			}
		})
	}
	wg.Wait()
	if labels, _ := a.get("users/ann").want(http.StatusOK).at("metadata.labels").(map[string]any); len(labels) != 1+
		4*writers {
		t.Errorf("got %d labels, want %d", len(labels), 1+4*writers)
	}
}

func TestUnknownDirectives(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("ann", `"labels":{"a":"b"}`)).want(http.StatusCreated)
	for body, field := range map[string]string{
		`{"$patch":"scramble"}`:                                               "$patch",
		`{"\u0024patch":"scramble"}`:                                          "$patch",
		`{"spec":{"$patch":"scramble"}}`:                                      "spec.$patch",
		`{"metadata":{"labels":{"$patch":"scramble"}}}`:                       "metadata.labels.$patch",
		`{"metadata":{"ownerReferences":[{"uid":"1"},{"$patch":"Replace"}]}}`: "metadata.ownerReferences[1].$patch",
		`{"metadata":{"ownerReferences":[{"$patch":1}]}}`:                     "metadata.ownerReferences[0].$patch",
		`{"metadata":{"ownerReferences":[{"$patch":null}]}}`:                  "metadata.ownerReferences[0].$patch",
		`{"status":{"conditions":[{"$patch":"","type":"Ready"}]}}`:            "status.conditions[0].$patch",
	} {
		status := a.patch("users/ann", strategic, body).want(http.StatusBadRequest).failure()
		if !strings.Contains(status.Message, field+":") {
			t.Errorf("%s: message does not contain %s: %s", body, field, status.Message)
		}
	}
	a.patch("users/ann", strategic, `{"metadata":{"labels":{"$patch":"replace","c":"d"}}}`).want(http.StatusOK).has(
		"metadata.labels", "map[c:d]")
	a.patch("users/ann", strategic, `{"metadata":{"labels":{"$patch":"delete"}}}`).want(http.StatusOK).has(
		"metadata.labels", "<nil>")
	a.patch("users/ann", strategic, `{"metadata":{"annotations":{"x":"$patch"}}}`).want(http.StatusOK).has(
		"metadata.annotations.x", "$patch")
}

// TestStrategicMergeOfLists checks that conditions merge by type, and finalizers as a set.
func TestStrategicMergeOfLists(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("ann")).want(http.StatusCreated)
	condition := func(kind, reason string) string {
		return fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","reason":%q}]}}`, kind, reason)
	}
	a.patch("users/ann/status", strategic, condition("Ready", "One")).want(http.StatusOK)
	a.patch("users/ann/status", strategic, condition("Known", "Two")).want(http.StatusOK)
	res := a.patch("users/ann/status", strategic, condition("Ready", "Three")).want(http.StatusOK)
	var got []string
	for _, c := range res.at("status.conditions").([]any) {
		got = append(got, fmt.Sprint(at(c, "type"), at(c, "reason")))
	}
	slices.Sort(got)
	if want := []string{"KnownTwo", "ReadyThree"}; !slices.Equal(got, want) {
		t.Errorf("conditions: got %q, want %q", got, want)
	}
	a.patch("users/ann/status", strategic, `{"status":{"conditions":[{"type":"Known","$patch":"delete"}]}}`).want(
		http.StatusOK).
		has("status.conditions.0.type", "Ready", "status.conditions.1", "<nil>")
	held := a.patch("users/ann", strategic, `{"metadata":{"finalizers":["example.com/hold"]}}`).want(http.StatusOK)
	if finalizers, _ := held.at("metadata.finalizers").([]any); len(finalizers) != 2 {
		t.Errorf("finalizers: got %v, want both", finalizers)
	}
}

// TestPatchErrorsDoNotShowTheObject checks that errors do not quote the object, which may contain
// fields that the caller may not read.
func TestPatchErrorsDoNotShowTheObject(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("ServiceAccount")
	a.post(k.plural, k.object("robot")).want(http.StatusCreated)
	secret := base64.StdEncoding.EncodeToString(
		[]byte(`{"type":"vendor_service_account","client_id":"robot","client_secret":"secret"}`))
	client, err := versioned.NewForConfig(a.server.Loopback()) // only the service may write credentials
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CloudV1alpha1().ServiceAccounts("acme").Patch(t.Context(), "robot", types.MergePatchType,
		[]byte(`{"status":{"privateKeyData":"`+secret+`"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	for body, contentType := range map[string]string{
		`{"spec":1}`:                              mergePatch,
		`{"kind":"Other"}`:                        mergePatch,
		`{"metadata":{"labels":1}}`:               mergePatch,
		`{"status":{"conditions":[{"type":{}}]}}`: mergePatch,
		`{"spec":2}`:                              strategic,
		`{"metadata":{"finalizers":{"a":1}}}`:     strategic,
		`[{"op":"add","path":"/spec","value":3}]`: jsonPatch,
		`[{"op":"test","path":"/status/privateKeyData","value":"x"}]`:                                   jsonPatch,
		`[{"op":"copy","from":"/status/privateKeyData","path":"/metadata/generation"}]`:                 jsonPatch,
		`[{"op":"copy","from":"/status/privateKeyData","path":"/metadata/labels"}]`:                     jsonPatch,
		`[{"op":"move","from":"/status/privateKeyData","path":"/metadata/deletionGracePeriodSeconds"}]`: jsonPatch,
	} {
		res := a.patch(k.plural+"/robot", contentType, body)
		res.want(http.StatusUnprocessableEntity, http.StatusBadRequest).failure()
		if strings.Contains(string(res.body), secret[:40]) {
			t.Errorf("response to %s contains the secret: %s", body, res.body)
		}
	}
	a.patch(k.plural+"/robot", mergePatch, `{"spec":1}`).has("details.name", "robot", "details.kind", "ServiceAccount",
		"details.causes.0.field", "patch")
	strict := a.patch(k.plural+"/robot?fieldValidation=Strict", mergePatch,
		`{"spec":{"surplus":1}}`).want(http.StatusUnprocessableEntity)
	if message := strict.failure().Message; !strings.Contains(message, "surplus") ||
		strings.Contains(message, "c2VjcmV0") {
		t.Errorf("message for an unknown field: got %q, want the field and no secret", message)
	}
}

// TestPatchesThatBreakTheMerge sends patches that make the API machinery panic.
func TestPatchesThatBreakTheMerge(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("User")
	a.post("users", k.object("ann")).want(http.StatusCreated)
	a.patch("users/ann/status", mergePatch, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`).want(
		http.StatusOK)
	for _, body := range []string{
		`{"status":{"conditions":[{"type":{}}]}}`, `{"status":{"conditions":[{"type":[]}]}}`,
		`{"status":{"conditions":[{"type":{},"$patch":"delete"}]}}`,
		`{"metadata":{"ownerReferences":[{"uid":{}},{"uid":[]}]}}`, `{"metadata":{"$setElementOrder/finalizers":1}}`,
		`{"metadata":{"$retainKeys":{}}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":[{}]}}`, `{"$setElementOrder/status":[{}]}`,
		`{"status":{"$setElementOrder/conditions":[{"type":{}}]}}`,
	} {
		for _, item := range []string{"users/ann", "users/ann/status"} {
			if res := a.patch(item, strategic, body); res.code >= http.StatusInternalServerError {
				t.Errorf("%s: got %d for %s: %s", item, res.code, body, res.body)
			}
		}
	}
	a.get("users/ann").want(http.StatusOK)
}

func TestDeepPatchesAreRefused(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("users", find("User").object("ann")).want(http.StatusCreated)
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, contentType := range []string{mergePatch, strategic} {
		a.patch("users/ann", contentType, nested(100)).want(http.StatusOK)
		a.patch("users/ann", contentType, nested(101)).want(http.StatusBadRequest).failure()
		a.patch("users/ann", contentType, nested(9999)).want(http.StatusBadRequest).failure()
		a.patch("users/ann", contentType, `{"metadata":{"annotations":{"x":"`+strings.Repeat(`{[\"`, 200)+
			`"}}}`).want(http.StatusOK)
	}
	a.patch("users/ann", jsonPatch, `[{"op":"add","path":"/x","value":`+nested(99)+`}]`).want(http.StatusBadRequest)
	a.patch("users/ann?fieldManager=me", applyPatch, nested(9999)).want(http.StatusBadRequest).failure()
}

func TestPatchMediaTypes(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("users", find("User").object("ann")).want(http.StatusCreated)
	for _, contentType := range []string{jsonType, "text/plain", "application/x-www-form-urlencoded", "nonsense"} {
		a.patch("users/ann", contentType, `{}`).want(http.StatusUnsupportedMediaType).failure()
	}
	a.patch("users/absent", mergePatch, `{}`).want(http.StatusNotFound).failure()
	for _, body := range []string{"", "{", "[]", "1", `"x"`, "nope"} {
		a.patch("users/ann", mergePatch, body).want(http.StatusBadRequest).failure()
	}
	for _, body := range []string{
		"", "{", "{}", "1", `[{"op":"add"}]`, `[{"op":"nope","path":"/a"}]`,
		`[{"op":"remove","path":"/nope"}]`, `[{"op":"add","path":"nope","value":1}]`,
	} {
		a.patch("users/ann", jsonPatch, body).want(http.StatusBadRequest, http.StatusUnprocessableEntity).failure()
	}
}
