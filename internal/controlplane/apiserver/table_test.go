package apiserver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
)

// seedReadOnly creates one object of each kind that only the service writes.
func (a *api) seedReadOnly() {
	a.Helper()
	client, err := versioned.NewForConfig(a.server.Loopback())
	if err != nil {
		a.Fatal(err)
	}
	name := metav1.ObjectMeta{Name: "one"}
	_, err1 := client.CloudV1alpha1().ClusterRoles().Create(a.Context(), &v1alpha1.ClusterRole{
		ObjectMeta: name, Spec: v1alpha1.ClusterRoleSpec{
			Description: "Reads.",
			Permissions: []string{"cloud.users.list", "cloud.users.describe"},
		},
	}, metav1.CreateOptions{})
	_, err2 := client.CloudV1alpha1().Pools("acme").Create(a.Context(), &v1alpha1.Pool{
		ObjectMeta: name, Spec: v1alpha1.PoolSpec{Type: "generic", DeploymentType: "hosted"},
	}, metav1.CreateOptions{})
	_, err3 := client.CloudV1alpha1().PoolMembers("acme").Create(a.Context(), &v1alpha1.PoolMember{
		ObjectMeta: name, Spec: v1alpha1.PoolMemberSpec{PoolName: "one", Type: "generic", Location: "here"},
	}, metav1.CreateOptions{})
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			a.Fatal(err)
		}
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.seedReadOnly()
	tests := map[string]struct {
		columns []string // wide ones in brackets
		cells   []string
	}{
		"ServiceAccount": {
			[]string{"Name", "Ready", "Reason", "Admin", "Age"},
			[]string{"one", "Unknown", "", "false"},
		},
		"ServiceAccountBinding": {
			[]string{"Name", "Ready", "Reason", "Account", "Member", "Age"},
			[]string{"one", "Unknown", "", "robot", "local"},
		},
		"User": {
			[]string{"Name", "Ready", "Reason", "Email", "Age"},
			[]string{"one", "Unknown", "", "ada@example.com"},
		},
		"MessagingInstance": {
			[]string{"Name", "Ready", "Reason", "Type", "(Mode)", "Age"},
			[]string{"one", "Unknown", "", "standard", "zonal"},
		},
		"MessagingCluster": {
			[]string{
				"Name", "Ready", "Reason", "As Requested", "Instance", "Location",
				"(Endpoint)", "(URL)", "Age",
			},
			[]string{"one", "Unknown", "", "", "i", "local", "one.acme.freshet.localhost", ""},
		},
		"APIKey": {
			[]string{"Name", "Ready", "Reason", "Account", "Instance", "(Expires)", "Age"},
			[]string{"one", "True", "Issued", "robot", "i", "never"},
		},
		"RoleBinding": {
			[]string{"Name", "Ready", "Reason", "Role", "Subjects", "Age"},
			[]string{"one", "Unknown", "", "org-readonly", "1"},
		},
		"ClusterRole": {
			[]string{"Name", "Ready", "Reason", "Permissions", "Description", "Age"},
			[]string{"one", "Unknown", "", "2", "Reads."},
		},
		"Pool": {
			[]string{"Name", "Ready", "Reason", "Type", "Deployment", "Age"},
			[]string{"one", "Unknown", "", "generic", "hosted"},
		},
		"PoolMember": {
			[]string{"Name", "Ready", "Reason", "Pool", "Location", "Age"},
			[]string{"one", "Unknown", "", "one", "here"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, k := a.in(t), find(name)
			items := acme + "/" + k.plural
			switch name {
			case "ClusterRole":
				items = apiPath + "/" + k.plural
			case "Pool", "PoolMember":
			default:
				a.post(items, k.object("one")).want(http.StatusCreated)
			}
			for _, path := range []string{items, items + "/one"} {
				table := a.get(path, "Accept", tableAccept).want(http.StatusOK).has("kind", "Table", "apiVersion",
					"meta.k8s.io/v1")
				var columns, cells []string
				for _, c := range table.at("columnDefinitions").([]any) {
					column := fmt.Sprint(at(c, "name"))
					if at(c, "priority") != float64(0) {
						column = "(" + column + ")"
					}
					columns = append(columns, column)
					if at(c, "description") == "" {
						t.Errorf("column %s has no description", column)
					}
				}
				for _, c := range table.at("rows.0.cells").([]any) {
					cells = append(cells, fmt.Sprint(c))
				}
				if !slices.Equal(columns, tc.columns) {
					t.Errorf("columns of %s: got %q, want %q", path, columns, tc.columns)
				}
				if !slices.Equal(cells[:len(cells)-1], tc.cells) {
					t.Errorf("cells of %s: got %q, want %q and the age", path, cells, tc.cells)
				}
			}
		})
	}
}

func TestTableOptions(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.fill(find("User"), 3)
	for query, kind := range map[string]string{
		"":                       "PartialObjectMetadata",
		"includeObject=Metadata": "PartialObjectMetadata", "includeObject=Object": "User",
		"includeObject=None": "<nil>",
	} {
		a.get("users?"+query, "Accept", tableAccept).want(http.StatusOK).has("rows.0.object.kind", kind)
	}
	a.get("users?includeObject=Half", "Accept", tableAccept).want(http.StatusBadRequest,
		http.StatusUnprocessableEntity).failure()
	a.get("users?limit=2", "Accept", tableAccept).want(http.StatusOK).has("metadata.remainingItemCount", "1")
	for _, accept := range []string{
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	} {
		res := a.get("users", "Accept", accept).want(http.StatusOK)
		if strings.Contains(string(res.body), "ada@example.com") {
			t.Errorf("partial metadata contains the spec: %s", res.body)
		}
	}
	a.get("users/n000", "Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").want(
		http.StatusOK).has("kind", "PartialObjectMetadata", "metadata.name", "n000", "spec", "<nil>")
	a.get("users", "Accept", "application/json;as=Picture;v=v1;g=meta.k8s.io").want(http.StatusNotAcceptable)
}

func TestTableShowsConditions(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		if k.kind == "APIKey" {
			continue // it has three conditions of its own; apikey.State summarizes them
		}
		a.post(k.plural, k.object("one")).want(http.StatusCreated)
		a.patch(k.plural+"/one/status", mergePatch,
			`{"status":{"conditions":[{"type":"Other","status":"False"},`+
				`{"type":"Ready","status":"True","reason":"Settled"}]}}`).want(http.StatusOK)
		a.get(k.plural+"/one", "Accept", tableAccept).has("rows.0.cells.1", "True", "rows.0.cells.2", "Settled")
	}
}
