package apiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/common"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/store"
)

// guests is a kind with the subresource invite.
type guests struct{}

func (guests) Info() store.Info                  { return store.Info{Kind: "Guest", Plural: "guests"} }
func (guests) New() *v1alpha1.User               { return &v1alpha1.User{} }
func (guests) NewList() runtime.Object           { return &v1alpha1.UserList{} }
func (guests) Spec(o *v1alpha1.User) any         { return &o.Spec }
func (guests) Status(o *v1alpha1.User) any       { return &o.Status }
func (guests) Subresources() []store.Subresource { return []store.Subresource{invitation{}} }

type invitation struct{}

func (invitation) Info() store.SubresourceInfo       { return store.SubresourceInfo{Name: "invite"} }
func (invitation) AddToScheme(*runtime.Scheme) error { return nil }
func (invitation) Open(schema.GroupResource, rest.Getter, rest.Updater) rest.Storage {
	return nil
}

func (invitation) Definitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return nil
}

// TestRouteContainsTheSubresourcesOfTheKinds checks the pattern of a path in the metrics.
func TestRouteContainsTheSubresourcesOfTheKinds(t *testing.T) {
	t.Parallel()
	k := kindsOf([]store.Definition{store.Define(guests{})})
	for path, want := range map[string]string{
		apiPrefix + "namespaces/acme/guests":              apiPrefix + "namespaces/{namespace}/guests",
		apiPrefix + "namespaces/acme/guests/ada":          apiPrefix + "namespaces/{namespace}/guests/{name}",
		apiPrefix + "namespaces/acme/guests/ada/status":   apiPrefix + "namespaces/{namespace}/guests/{name}/status",
		apiPrefix + "namespaces/acme/guests/ada/invite":   apiPrefix + "namespaces/{namespace}/guests/{name}/invite",
		apiPrefix + "namespaces/acme/guests/ada/token":    apiPrefix + "namespaces/{namespace}/guests/{name}/other",
		apiPrefix + "namespaces/acme/strangers/ada/token": apiPrefix + "namespaces/{namespace}/other/{name}/other",
		"/readyz/etcd": "/readyz",
		"/favicon.ico": "other",
	} {
		if got := k.route(path); got != want {
			t.Errorf("route of %s: got %s, want %s", path, got, want)
		}
	}
}
