package apiserver

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// policies is a kind whose plural is not its name with an s.
type policies struct{ guests }

func (policies) Info() store.Info { return store.Info{Kind: "Policy", Plural: "policies"} }

// TestResourceOfAKind checks that the resource of an owner or of an event's object is the one that the
// kind states.
func TestResourceOfAKind(t *testing.T) {
	t.Parallel()
	k := kindsOf([]store.Definition{store.Define(guests{}), store.Define(policies{})})
	for kind, want := range map[string]string{
		"Guest": "guests", "Policy": "policies", "POLICY": "policies", "Policie": "", "Stranger": "", "": "",
	} {
		resource, definition, ok := k.ofKind(kind)
		if resource != want || ok != (want != "") {
			t.Errorf("resource of kind %q: got %q, %t, want %q", kind, resource, ok, want)
		}
		if ok && definition.Info().Plural != want {
			t.Errorf("definition of kind %q: got %s, want %s", kind, definition.Info().Plural, want)
		}
	}
}

// denier is an Authorizer that denies everything.
type denier struct{ Authorizer }

// Authorize implements Authorizer.
func (denier) Authorize(context.Context, *identity.Principal, access.Permission, access.Scope) (access.Decision,
	error,
) {
	return access.Decision{}, access.ErrDenied
}

// TestBlockingAnOwnerOfAnyPlural checks that a caller needs the permission to change an owner whose
// deletion an object blocks, whatever the plural of its kind is.
func TestBlockingAnOwnerOfAnyPlural(t *testing.T) {
	t.Parallel()
	objects := objectAuthorizer{denier{}, kindsOf([]store.Definition{store.Define(policies{})})}
	ctx := request.WithUser(t.Context(), caller.Caller{Principal: &identity.Principal{Name: "ada"}})
	err := objects.AuthorizeBlocking(ctx, "acme", metav1.OwnerReference{Kind: "Policy", Name: "strict"})
	if !apierrors.IsForbidden(err) {
		t.Errorf("blocking an owner without permission: got %v, want Forbidden", err)
	}
	if err := objects.AuthorizeBlocking(ctx, "acme", metav1.OwnerReference{Kind: "Deployment"}); err != nil {
		t.Errorf("blocking an owner of a kind that is not served: got %v, want no error", err)
	}
}
