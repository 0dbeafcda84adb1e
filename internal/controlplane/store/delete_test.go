package store_test

import (
	"context"
	"net/url"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity"
)

func TestProtectedObjectsAreNotDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for value, deleted := range map[string]bool{"true": false, "": false, "anything": false, "false": true} {
		o := role("p")
		o.Annotations = map[string]string{v1alpha1.AnnotationDestroyProtected: value}
		if got := !store.Protected(o); got != deleted {
			t.Errorf("annotation %q: got deletable %v, want %v", value, got, deleted)
		}
	}
	o := role("p")
	o.Annotations = map[string]string{v1alpha1.AnnotationDestroyProtected: "true"}
	w.mustCreate(o)
	if _, _, err := w.main.Delete(w.ctx, "p", nil, &metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("delete: got %v, want Conflict", err)
	}
	w.wantCalls()
}

func TestDeleteOptionsOfTheQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustCreate(role("a"))
	grace := int64(7)
	accepted := func(err error) bool { return err == nil }
	for name, tc := range map[string]struct {
		query   string
		options metav1.DeleteOptions
		want    func(error) bool
	}{
		"contradiction": {
			"gracePeriodSeconds=9", metav1.DeleteOptions{GracePeriodSeconds: &grace}, apierrors.IsInvalid,
		},
		"negative":            {"gracePeriodSeconds=-1", metav1.DeleteOptions{}, apierrors.IsInvalid},
		"too long":            {"gracePeriodSeconds=2147483648", metav1.DeleteOptions{}, apierrors.IsInvalid},
		"unknown dry run":     {"dryRun=Some", metav1.DeleteOptions{}, apierrors.IsInvalid},
		"unknown policy":      {"propagationPolicy=Some", metav1.DeleteOptions{}, apierrors.IsInvalid},
		"not a version":       {"", withVersionPrecondition("x"), apierrors.IsBadRequest},
		"dry run":             {"dryRun=All", metav1.DeleteOptions{}, accepted},
		"dry run in the body": {"", metav1.DeleteOptions{DryRun: []string{"All"}}, accepted},
	} {
		query, err := url.ParseQuery(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		ctx := store.WithDeleteQuery(w.ctx, query)
		if _, _, err := w.main.Delete(ctx, "a", nil, &tc.options); !tc.want(err) {
			t.Errorf("%s: got %v", name, err)
		}
		w.wantCalls()
		if _, ok := w.resource.Lookup(w.ctx, "acme", "a"); !ok {
			t.Fatalf("%s: object was deleted", name)
		}
	}
	if _, deleted, err := w.main.Delete(w.ctx, "a", nil, &metav1.DeleteOptions{}); err != nil || !deleted {
		t.Errorf("delete: got %v, %v, want it deleted with its finalizer", deleted, err)
	}
	w.wantCalls("remove")
}

func withVersionPrecondition(version string) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}
}

func TestForegroundDeletionKeepsTheFinalizer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustCreate(role("a"))
	foreground := metav1.DeletePropagationForeground
	out, deleted, err := w.main.Delete(w.ctx, "a", nil, &metav1.DeleteOptions{PropagationPolicy: &foreground})
	if err != nil || deleted {
		t.Fatalf("delete: got deleted %v, %v, want an object that waits", deleted, err)
	}
	if got := out.(*object).Finalizers; !slices.Contains(got, finalizer) {
		t.Errorf("finalizers: got %q, want %s in them", got, finalizer)
	}
	w.wantCalls("remove")
}

// TestTheServiceManagesTheOwner checks that a caller can neither set nor remove the owner reference that
// the service manages.
func TestTheServiceManagesTheOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := w.ctx
	w.ctx = request.WithUser(w.ctx, caller.Caller{Principal: &identity.Principal{Name: "ada", Organization: "acme"}})
	owner := metav1.OwnerReference{APIVersion: "cloud.vendor.io/v1alpha1", Kind: "User", Name: "u", UID: "1"}
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "Other", Name: "o", UID: "2"}
	o := role("a")
	o.OwnerReferences = []metav1.OwnerReference{owner, foreign}
	created := w.mustCreate(o)
	if len(created.OwnerReferences) != 1 || created.OwnerReferences[0].Kind != "Other" {
		t.Errorf("owners after a create by a caller: got %v, want Other", created.OwnerReferences)
	}
	byCaller := w.ctx
	w.ctx = service
	set := func(o *object) { o.OwnerReferences = []metav1.OwnerReference{owner} }
	if _, err := w.update(w.main, "a", set); err != nil {
		t.Fatal(err)
	}
	w.ctx = byCaller
	updated, err := w.update(w.main, "a", func(o *object) { o.OwnerReferences = nil })
	if err != nil || len(updated.OwnerReferences) != 1 || updated.OwnerReferences[0].UID != owner.UID {
		t.Errorf("owners after a caller removed them: got %v, %v, want the user", updated, err)
	}
	w.authorizer.deny("block")
	blocking := true
	_, err = w.update(w.main, "a", func(o *object) {
		foreign.BlockOwnerDeletion = &blocking
		o.OwnerReferences = append(o.OwnerReferences, foreign)
	})
	if !apierrors.IsForbidden(err) {
		t.Errorf("blocking the deletion of an owner: got %v, want Forbidden", err)
	}
}

func TestErrorsOfAPatchAreTheCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustCreate(role("a"))
	for name, patch := range map[string]func(*object) runtime.Object{
		"panic":         func(*object) runtime.Object { panic("merge key") },
		"not a version": func(o *object) runtime.Object { o.ResourceVersion = "x"; return o },
		"not an object": func(*object) runtime.Object { return &metav1.Status{} },
	} {
		apply := func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			return patch(old.DeepCopyObject().(*object)), nil
		}
		info := rest.DefaultUpdatedObjectInfo(nil, apply)
		_, _, err := w.main.Update(w.ctx, "a", info, nil, nil, false, &metav1.UpdateOptions{})
		if !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got %v, want BadRequest", name, err)
		}
		w.wantCalls()
	}
}

func TestCreateNamesAndReveals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o, err := w.create(role(""))
	if err != nil {
		t.Fatal(err)
	}
	if o.Name == "" || o.Annotations["revealed"] != "once" || o.Generation != 1 ||
		!slices.Equal(o.Spec.Permissions, []string{"prepared"}) {
		t.Errorf("created: got %+v, want a name, a revealed value, generation 1 and the prepared spec", o)
	}
	if stored, ok := w.resource.Lookup(w.ctx, "acme", o.Name); !ok || stored.Annotations["revealed"] != "" {
		t.Errorf("stored: got %+v, want it without the revealed value", stored)
	}
	updated, err := w.update(w.main, o.Name, func(o *object) { o.Spec.Description = "new" })
	if err != nil || updated.Generation != 2 || updated.Annotations["revealed"] != "" {
		t.Errorf("updated: got %+v, %v, want generation 2 and nothing revealed", updated, err)
	}
}
