package apiserver_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// kind is one of the kinds that users can write.
type kind struct {
	kind, plural, short string
	spec                string // of a valid object
	change              string // merge patch that changes the spec; empty if the spec is immutable
	finalizer           bool
	deletedImmediately  bool // deleted by the delete call itself, with or without a finalizer
}

var kinds = []kind{
	{"ServiceAccount", "serviceaccounts", "sa", `{}`, ``, true, false},
	{
		"ServiceAccountBinding", "serviceaccountbindings", "sab",
		`{"serviceAccountName":"robot","poolMemberRef":{"namespace":"default","name":"local"}}`, ``, true, true,
	},
	{"User", "users", "usr", `{"email":"ada@example.com"}`, `{"spec":{"email":"eve@example.com"}}`, true, true},
	{
		"MessagingInstance", "messaginginstances", "mi", `{"availabilityMode":"zonal"}`,
		`{"spec":{"auth":{"oauth2":{"tokenLifetimeSeconds":60}}}}`, true, false,
	},
	{
		"MessagingCluster", "messagingclusters", "mc", `{"instanceName":"i","location":"local"}`,
		`{"spec":{"broker":{"replicas":3}}}`, true, false,
	},
	{
		"APIKey", "apikeys", "ak", `{"serviceAccountName":"robot","instanceName":"i"}`,
		`{"spec":{"description":"new"}}`, true, true,
	},
	{
		"RoleBinding", "rolebindings", "rb",
		`{"subjects":[{"kind":"User","name":"ada"}],"roleRef":{"kind":"ClusterRole","name":"org-readonly"}}`,
		`{"spec":{"subjects":[]}}`, false, true,
	},
	{
		"Role", "roles", "ro", `{"permissions":["cloud.users.list"]}`,
		`{"spec":{"permissions":["cloud.users.describe"]}}`, false, true,
	},
}

// readOnly contains the kinds that only the service writes.
var readOnly = []kind{
	{kind: "ClusterRole", plural: "clusterroles", short: "cr", spec: `{"permissions":["cloud.users.list"]}`},
	{kind: "Pool", plural: "pools", short: "pool", spec: `{"type":"generic"}`},
	{kind: "PoolMember", plural: "poolmembers", short: "pm", spec: `{"poolName":"local","type":"generic"}`},
}

// object returns an object of the kind; metadata is JSON that is added to the metadata.
func (k kind) object(name string, metadata ...string) string {
	return k.with(k.spec, name, metadata...)
}

func (k kind) with(spec, name string, metadata ...string) string {
	quoted, _ := json.Marshal(name)
	more := strings.Join(append([]string{""}, metadata...), ",")
	return `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"` + k.kind + `","metadata":{"name":` + string(quoted) +
		more + `},"spec":` + spec + `}`
}

func find(name string) kind {
	all := append(slices.Clone(kinds), readOnly...)
	return all[slices.IndexFunc(all, func(k kind) bool { return k.kind == name })]
}

// TestOperations runs every operation of docs/spec/resources.md#paths for each kind.
func TestOperations(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			created := a.post(k.plural, k.object("one")).want(http.StatusCreated).has(
				"kind", k.kind, "apiVersion", "cloud.vendor.io/v1alpha1", "metadata.name", "one", "metadata.namespace",
				"acme", "metadata.generation", "1")
			for _, path := range []string{"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp"} {
				if created.at(path) == nil {
					t.Errorf("new object has no %s", path)
				}
			}
			wantFinalizer := "<nil>"
			if k.finalizer {
				wantFinalizer = "[" + strings.ToLower(k.kind) + ".finalizers.cloud.vendor.io]"
			}
			created.has("metadata.finalizers", wantFinalizer)
			a.post(k.plural, k.object("one")).want(http.StatusConflict).has("reason", "AlreadyExists")
			a.get(k.plural+"/one").want(http.StatusOK).has("metadata.uid", created.at("metadata.uid").(string))
			a.get(k.plural).want(http.StatusOK).has("kind", k.kind+"List", "items.0.metadata.name", "one")
			for _, method := range []string{http.MethodPut, http.MethodPost} {
				a.call(method, k.plural+"/one", k.object("one", `"labels":{"by":"`+method+`"}`)).
					want(http.StatusOK).has("metadata.labels.by", method, "metadata.finalizers", wantFinalizer)
			}
			a.patch(k.plural+"/one", mergePatch, `{"metadata":{"labels":{"by":"merge"}}}`).want(http.StatusOK).has(
				"metadata.labels.by", "merge")
			a.patch(k.plural+"/one", jsonPatch, `[{"op":"replace","path":"/metadata/labels/by","value":"json"}]`).want(
				http.StatusOK).has("metadata.labels.by", "json")
			a.patch(k.plural+"/one", strategic, `{"metadata":{"labels":{"by":"strategic"}}}`).want(http.StatusOK).has(
				"metadata.labels.by", "strategic")
			a.patch(k.plural+"/one?fieldManager=test", applyPatch, `{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"`+
				k.kind+`","metadata":{"labels":{"applied":"yes"}}}`).
				want(http.StatusOK).has("metadata.labels.applied", "yes", "metadata.labels.by", "strategic")
			a.delete(k.plural+"/one").want(http.StatusOK, http.StatusAccepted)
			if k.finalizer && !k.deletedImmediately {
				a.get(k.plural+"/one").want(http.StatusOK).has("metadata.deletionGracePeriodSeconds", "0",
					"metadata.finalizers", wantFinalizer)
				a.patch(k.plural+"/one", mergePatch, `{"metadata":{"finalizers":null}}`).want(http.StatusOK)
			}
			a.get(k.plural+"/one").want(http.StatusNotFound).has("reason", "NotFound", "details.name", "one",
				"details.kind", k.plural)
			a.delete(k.plural + "/one").want(http.StatusNotFound)
			a.put(k.plural+"/one", k.object("one")).want(http.StatusNotFound)
			a.post(k.plural+"/one", k.object("one")).want(http.StatusNotFound)
		})
	}
}

func TestReadOnlyKinds(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range readOnly {
		t.Run(k.kind, func(t *testing.T) {
			a := a.in(t)
			items := acme + "/" + k.plural
			if k.kind == "ClusterRole" {
				items = apiPath + "/" + k.plural
			}
			a.get(items).want(http.StatusOK)
			a.post(items, k.object("mine")).want(http.StatusForbidden).has("reason", "Forbidden")
			a.put(items+"/mine", k.object("mine")).want(http.StatusForbidden)
			a.patch(items+"/mine", mergePatch, `{}`).want(http.StatusForbidden)
			a.patch(items+"/mine?fieldManager=me", applyPatch, k.object("mine")).want(http.StatusForbidden)
			a.delete(items + "/mine").want(http.StatusForbidden)
			a.delete(items).want(http.StatusForbidden)
			a.patch(items+"/mine/status", mergePatch, `{}`).want(http.StatusForbidden)
		})
	}
}

// TestValidationCauses checks that the errors of each kind's validation are the causes of a 422, for
// every way to write the object.
func TestValidationCauses(t *testing.T) {
	t.Parallel()
	a := start(t)
	for _, k := range kinds {
		a.post(k.plural, k.object("good")).want(http.StatusCreated)
	}
	tests := map[string]struct {
		kind, spec string
		create     []string // causes of the create
		update     []string // causes of a replace of a valid object
	}{
		"user without an address": {"User", `{}`, []string{"spec.email"}, []string{"spec.email"}},
		"user with half a name": {
			"User", `{"email":"a@b.c","name":{"first":"A"}}`,
			[]string{"spec.name.last"},
			[]string{"spec.name.last"},
		},
		"instance of unknown type": {
			"MessagingInstance", `{"type":"gold"}`,
			[]string{"spec.type"},
			[]string{"spec.type", "spec.type"},
		},
		"instance in another mode": {
			"MessagingInstance", `{"availabilityMode":"regional"}`, nil,
			[]string{"spec.availabilityMode"},
		},
		"instance in another pool": {
			"MessagingInstance", `{"poolRef":{"name":"other"}}`, nil,
			[]string{"spec.poolRef"},
		},
		"instance with old tokens": {
			"MessagingInstance", `{"auth":{"oauth2":{"tokenLifetimeSeconds":2592001}}}`,
			[]string{"spec.auth.oauth2.tokenLifetimeSeconds"},
			[]string{"spec.auth.oauth2.tokenLifetimeSeconds"},
		},
		"cluster without anything": {
			"MessagingCluster", `{}`,
			[]string{"spec.instanceName", "spec.location"},
			[]string{"spec.instanceName", "spec.instanceName"},
		},
		"cluster too small": {
			"MessagingCluster",
			`{"instanceName":"i","location":"local","broker":{"resources":{"cpu":"399m","memory":"1.5Gi"}}}`,
			[]string{"spec.broker.resources.cpu", "spec.broker.resources.memory"},
			[]string{"spec.broker.resources.cpu", "spec.broker.resources.memory"},
		},
		"cluster too big": {
			"MessagingCluster",
			`{"instanceName":"i","location":"local","broker":{"replicas":16},"storage":{"replicas":2}}`,
			[]string{"spec.broker.replicas", "spec.storage.replicas"},
			[]string{"spec.broker.replicas", "spec.storage.replicas"},
		},
		"cluster elsewhere": {
			"MessagingCluster", `{"instanceName":"i","location":"moon"}`,
			[]string{"spec.location"},
			[]string{"spec.location"},
		},
		"cluster of another instance": {
			"MessagingCluster", `{"instanceName":"j","location":"local"}`, nil,
			[]string{"spec.instanceName"},
		},
		"cluster on another channel": {
			"MessagingCluster",
			`{"instanceName":"i","location":"local","releaseChannel":"lts"}`, nil,
			[]string{"spec.releaseChannel"},
		},
		"key without an account": {
			"APIKey", `{"instanceName":"i"}`,
			[]string{"spec.serviceAccountName"},
			[]string{"spec.serviceAccountName", "spec.serviceAccountName"},
		},
		"key for another instance": {
			"APIKey", `{"serviceAccountName":"robot","instanceName":"j"}`, nil,
			[]string{"spec.instanceName"},
		},
		"key of the past": {
			"APIKey",
			`{"serviceAccountName":"robot","instanceName":"i","expirationTime":"2020-01-01T00:00:00Z"}`,
			[]string{"spec.expirationTime"},
			[]string{"spec.expirationTime"},
		},
		"key with an empty lock": {
			"APIKey",
			`{"serviceAccountName":"robot","instanceName":"i","encryptionKey":{}}`,
			[]string{"spec.encryptionKey"},
			[]string{"spec.encryptionKey", "spec.encryptionKey"},
		},
		"account binding to nowhere": {
			"ServiceAccountBinding",
			`{"serviceAccountName":"robot","poolMemberRef":{"name":""}}`,
			[]string{"spec.poolMemberRef.name"},
			[]string{"spec", "spec.poolMemberRef.name"},
		},
		"account binding to elsewhere": {
			"ServiceAccountBinding",
			`{"serviceAccountName":"robot","poolMemberRef":{"name":"other"}}`, nil,
			[]string{"spec"},
		},
		"role binding without a role": {
			"RoleBinding", `{"roleRef":{"kind":"ClusterRole","name":""}}`,
			[]string{"spec.roleRef.name"},
			[]string{"spec.roleRef", "spec.roleRef.name"},
		},
		"role of unknown permissions": {
			"Role", `{"permissions":["cloud.users.list","x.y.z"]}`,
			[]string{"spec.permissions[1]"},
			[]string{"spec.permissions[1]"},
		},
		"role binding of no own role": {
			"RoleBinding", `{"roleRef":{"kind":"Role","name":"absent"}}`,
			[]string{"spec.roleRef.name"},
			[]string{"spec.roleRef"},
		},
		"role binding of another role": {
			"RoleBinding", `{"roleRef":{"kind":"ClusterRole","name":"org-admin"}}`, nil,
			[]string{"spec.roleRef"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, k := a.in(t), find(tc.kind)
			fresh := a.post(k.plural+"?dryRun=All", k.with(tc.spec, "bad"))
			if tc.create == nil {
				fresh.want(http.StatusCreated)
			} else if got := fresh.want(http.StatusUnprocessableEntity).has("reason", "Invalid", "details.name", "bad",
				"details.kind", tc.kind).causes(); !slices.Equal(got, tc.create) {
				t.Errorf("causes of the create: got %q, want %q\n%s", got, tc.create, fresh.body)
			}
			replaced := a.put(k.plural+"/good", k.with(tc.spec, "good"))
			if got := replaced.want(http.StatusUnprocessableEntity).causes(); !slices.Equal(got, tc.update) {
				t.Errorf("causes of the replace: got %q, want %q\n%s", got, tc.update, replaced.body)
			}
		})
	}
}

func TestDefaultsOnTheWire(t *testing.T) {
	t.Parallel()
	a := start(t)
	a.post("messaginginstances", `{"metadata":{"name":"i"}}`).want(http.StatusCreated).has(
		"spec.availabilityMode", "zonal", "spec.type", "standard", "spec.auth", "map[apikey:map[]]",
		"spec.poolRef.name", "local", "spec.poolRef.namespace", "default", "status.auth", "<nil>")
	if body := string(a.get("messaginginstances/i").body); !strings.Contains(body, `"status":{"auth":null}`) {
		t.Errorf("status.auth of a new instance: want null: %s", body)
	}
	a.post("messagingclusters", `{"metadata":{"name":"c"},"spec":{"instanceName":"i","location":"local"}}`).want(
		http.StatusCreated).has(
		"spec.releaseChannel", "rapid", "spec.broker.replicas", "1", "spec.storage.replicas", "1",
		"spec.broker.resources", "<nil>", "spec.config.protocols", "map[stream:map[]]",
		"spec.broker.image", "freshet/broker:test", "spec.storage.image", "freshet/storage:test",
		"spec.poolMemberRef.name", "local", "spec.poolMemberRef.namespace", "default",
		"spec.serviceEndpoints.0.dnsName", "c.acme.freshet.localhost", "spec.serviceEndpoints.0.type", "service")
	a.post("messaginginstances", `{"metadata":{"name":"sl"},"spec":{"type":"serverless"}}`).want(http.StatusCreated)
	a.post("messagingclusters", `{"metadata":{"name":"sl"},"spec":{"instanceName":"sl","location":"local"}}`).want(
		http.StatusCreated).has(
		"spec.storage", "<nil>", "spec.broker.replicas", "2")
	got := a.post("messagingclusters?dryRun=All",
		`{"metadata":{"name":"sl2"},"spec":{"instanceName":"sl","location":"local","storage":{"replicas":3}}}`).
		want(http.StatusUnprocessableEntity).causes()
	if !slices.Equal(got, []string{"spec.storage"}) {
		t.Errorf("storage of a serverless cluster: got causes %q, want spec.storage", got)
	}
	got = a.patch("messagingclusters/sl", mergePatch,
		`{"spec":{"broker":{"replicas":3}}}`).want(http.StatusUnprocessableEntity).causes()
	if !slices.Equal(got, []string{"spec.broker.replicas"}) {
		t.Errorf("third broker of a serverless cluster: got causes %q, want spec.broker.replicas", got)
	}
}
