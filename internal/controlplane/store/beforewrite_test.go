package store_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// TestNothingIsIssuedForARejectedWrite checks that the kind's Finisher, which issues tokens, runs only for a
// write that is valid, authorized and admitted.
func TestNothingIsIssuedForARejectedWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reject := func(context.Context, runtime.Object) error { return errors.New("organization does not exist") }
	tests := map[string]struct {
		object   *object
		validate rest.ValidateObjectFunc
		want     func(error) bool
	}{
		"invalid":            {role("a", "validation", "rejects"), nil, apierrors.IsInvalid},
		"denied":             {role("b", "instance", "closed"), nil, apierrors.IsForbidden},
		"not admitted":       {role("c", "admission", "rejects"), nil, apierrors.IsForbidden},
		"over quota":         {role("d", "quota", "rejects"), nil, apierrors.IsForbidden},
		"by API admission":   {role("e"), reject, func(err error) bool { return err != nil }},
		"with a bad name":    {role("No Name"), nil, apierrors.IsInvalid},
		"of another version": {withVersion(role("f")), nil, apierrors.IsInvalid},
	}
	for name, tc := range tests {
		if _, err := w.main.Create(w.ctx, tc.object, tc.validate, &metav1.CreateOptions{}); !tc.want(err) {
			t.Errorf("create, %s: got %v", name, err)
		}
		w.wantCalls()
	}
	w.mustCreate(role("stored"))
	for name, change := range map[string]func(*object){
		"invalid":      func(o *object) { o.Labels["validation"] = "rejects" },
		"not admitted": func(o *object) { o.Labels["admission"] = "rejects" },
	} {
		if _, err := w.update(w.main, "stored", change); err == nil {
			t.Errorf("update, %s: got no error, want one", name)
		}
		w.wantCalls()
	}
	w.authorizer.deny("update")
	for name, to := range map[string]rest.Updater{"main": w.main, "status": w.status} {
		if _, err := w.update(to, "stored", func(*object) {}); !apierrors.IsForbidden(err) {
			t.Errorf("update of %s, denied: got %v, want Forbidden", name, err)
		}
		w.wantCalls()
	}
	w.authorizer.deny("create")
	if err := w.apply(role("applied")); !apierrors.IsForbidden(err) {
		t.Errorf("apply, denied: got %v, want Forbidden", err)
	}
	w.wantCalls()
	if n := w.kind.reserved; n != 0 {
		t.Errorf("reservations after the calls: got %d, want 0", n)
	}
}

func withVersion(o *object) *object {
	o.ResourceVersion = "1"
	return o
}

// TestIssuedBeforeTheWrite checks that what the Finisher sets is stored and returned, and that the
// Expecter sees it before the write and the Observer after it.
func TestIssuedBeforeTheWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	issued := func(when string, o *object, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if len(o.Status.Conditions) == 0 || o.Status.Conditions[0].Type != "Issued" {
			t.Errorf("%s: got conditions %v, want Issued", when, o.Status.Conditions)
		}
	}
	created, err := w.create(role("a"))
	issued("create", created, err)
	w.wantCalls("finish", "expect True", "put")
	stored, ok := w.resource.Lookup(w.ctx, "acme", "a")
	if !ok {
		t.Fatal("object is not stored")
	}
	issued("read", stored, nil)

	updated, err := w.update(w.main, "a", func(o *object) { o.Labels["new"] = "yes" })
	issued("update", updated, err)
	w.wantCalls("finish", "expect True", "put")
	updated, err = w.update(w.status, "a", func(o *object) { o.Status.Conditions = nil })
	issued("update of the status", updated, err)
	w.wantCalls("finish", "expect True", "put")
	if err := w.apply(role("applied")); err != nil {
		t.Fatal(err)
	}
	w.wantCalls("finish", "expect True", "put")

	dry, err := w.create(role("dry"), metav1.DryRunAll)
	issued("dry run of a create", dry, err)
	w.wantCalls("finish")
	dry, err = w.update(w.main, "a", func(o *object) { o.Labels["new"] = "no" }, metav1.DryRunAll)
	issued("dry run of an update", dry, err)
	w.wantCalls("finish")
	dry, err = w.update(w.status, "a", func(*object) {}, metav1.DryRunAll)
	issued("dry run of an update of the status", dry, err)
	w.wantCalls("finish")
	if _, ok := w.resource.Lookup(w.ctx, "acme", "dry"); ok {
		t.Error("dry run has stored the object")
	}
}
