package apiserver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// equivalentValues contains values with several textual forms: a spec around %s, two forms of the same
// value, and one of a different value.
var equivalentValues = map[string]struct{ kind, spec, one, same, other string }{
	"memory": {
		"MessagingCluster",
		`{"instanceName":"i","location":"local","broker":{"resources":{"cpu":"1","memory":%s}}}`, `"1.6Gi"`,
		`"1717986918400m"`, `"1.7Gi"`,
	},
	"cpu": {
		"MessagingCluster",
		`{"instanceName":"i","location":"local","broker":{"resources":{"cpu":%s,"memory":"4Gi"}}}`, `"0.5"`,
		`"500m"`, `"501m"`,
	},
	"cpu, number": {
		"MessagingCluster",
		`{"instanceName":"i","location":"local","broker":{"resources":{"cpu":%s,"memory":"4Gi"}}}`, `2`, `"2"`, `3`,
	},
	"storage": {
		"MessagingCluster",
		`{"instanceName":"i","location":"local","storage":{"resources":{"cpu":"1000m","memory":%s}}}`, `"4096Mi"`,
		`"4Gi"`, `"5Gi"`,
	},
	"ledger disk": {
		"MessagingCluster",
		`{"instanceName":"i","location":"local","storage":{"resources":{"cpu":"1","memory":"4Gi","ledgerDisk":%s}}}`,
		`"0.5Ti"`, `"512Gi"`, `"1Ti"`,
	},
	"journal disk": {
		"MessagingCluster",
		`{"instanceName":"i","location":"local","storage":{"resources":{"cpu":"1","memory":"4Gi","journalDisk":%s}}}`,
		`"1.5Gi"`, `"1536Mi"`, `"1537Mi"`,
	},
	"duration": {
		"MessagingCluster",
		`{"instanceName":"i","location":"local","maintenanceWindow":{"window":{"startTime":"22:00","duration":%s}}}`,
		`"180m"`, `"3h0m0s"`, `"4h"`,
	},
	"settings": {
		"MessagingCluster",
		`{"instanceName":"i","location":"local","config":{"protocols":{"stream":{"b":%s,"a":1}}}}`, `1.0`, `1`, `2`,
	},
	"time": {
		"APIKey", `{"serviceAccountName":"robot","instanceName":"i","expirationTime":%s}`,
		`"2099-01-01T01:00:00+01:00"`, `"2099-01-01T00:00:00Z"`, ``,
	},
	"invitation": {
		"User", `{"email":"a@example.com","invitation":{"decision":"pending","expiration":%s}}`,
		`"2099-01-01T01:00:00.000+01:00"`, `"2099-01-01T00:00:00Z"`, `"2099-01-02T00:00:00Z"`,
	},
}

// TestApplyOfTheSameValue checks that an unchanged manifest changes nothing, and that the same
// value of another manager is shared, whatever its textual form.
func TestApplyOfTheSameValue(t *testing.T) {
	t.Parallel()
	a := start(t)
	i := 0
	for name, tc := range equivalentValues {
		i++
		item := fmt.Sprint("v", i)
		t.Run(name, func(t *testing.T) {
			a, k := a.in(t), find(tc.kind)
			apply := func(manager, value string, yaml bool) reply {
				body := k.apply(item, fmt.Sprintf(tc.spec, value))
				if yaml {
					body = "# as YAML\n" + body
				}
				return a.patch(k.plural+"/"+item+"?fieldManager="+manager, applyPatch, body)
			}
			created := apply("one", tc.one, false).want(http.StatusCreated)
			for _, yaml := range []bool{false, true} {
				again := apply("one", tc.one, yaml).want(http.StatusOK)
				if again.version() != created.version() ||
					fmt.Sprint(again.at("metadata.managedFields")) != fmt.Sprint(created.at("metadata.managedFields")) {
					t.Errorf("unchanged manifest changed version %s to %s\nbefore %v\nafter %v",
						created.version(), again.version(), created.at("metadata.managedFields"),
						again.at("metadata.managedFields"))
				}
			}
			for manager, value := range map[string]string{"two": tc.one, "three": tc.same} {
				apply(manager, value, false).want(http.StatusOK).has("metadata.generation", "1")
			}
			managers := owners(a.get(k.plural + "/" + item))
			if want := []string{"one", "three", "two"}; !slices.Equal(managers, want) {
				t.Errorf("managers of the value: got %q, want %q", managers, want)
			}
			if tc.other != "" {
				conflict := apply("two", tc.other, false).want(http.StatusConflict).failure().Message
				if !strings.Contains(conflict, `"one"`) {
					t.Errorf("different value: got message %q, want the other managers in it", conflict)
				}
			}
		})
	}
}

// owners returns the managers that applied.
func owners(r reply) []string {
	entries, _ := r.want(http.StatusOK).at("metadata.managedFields").([]any)
	var names []string
	for _, entry := range entries {
		if at(entry, "operation") == "Apply" {
			names = append(names, fmt.Sprint(at(entry, "manager")))
		}
	}
	slices.Sort(names)
	return names
}

// TestApplyOfOddBodies checks that the API machinery reports the errors of an invalid body, and
// gets it unchanged.
func TestApplyOfOddBodies(t *testing.T) {
	t.Parallel()
	a := start(t)
	k := find("MessagingCluster")
	spec := `{"instanceName":"i","location":"local","broker":{"resources":{"cpu":"1","memory":%s}}}`
	for name, tc := range map[string]struct{ body, want string }{
		"duplicate":      {k.apply("c", fmt.Sprintf(spec, `"1.6Gi","memory":"1.7Gi"`)), "memory"},
		"yaml duplicate": {"#\n" + k.apply("c", fmt.Sprintf(spec, `"1.6Gi","memory":"1.7Gi"`)), "memory"},
		"unknown":        {k.apply("c", fmt.Sprintf(spec, `"1.6Gi","colour":"red"`)), "colour"},
		"not a quantity": {k.apply("c", fmt.Sprintf(spec, `"lots"`)), "quantit"},
		"a list":         {k.apply("c", fmt.Sprintf(spec, `["1.6Gi"]`)), "memory"},
		"cut short":      {k.apply("c", fmt.Sprintf(spec, `"1.6Gi"`))[:90], ""},
	} {
		message := a.patch(k.plural+"/c?fieldManager=me&fieldValidation=Strict", applyPatch, tc.body).
			want(http.StatusBadRequest, http.StatusUnprocessableEntity).failure().Message
		if !strings.Contains(message, tc.want) {
			t.Errorf("%s: got message %q, want %q in it", name, message, tc.want)
		}
	}
	a.get(k.plural + "/c").want(http.StatusNotFound)
}
