package store_test

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1internal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"freshet/api/v1alpha1"
)

func namesOf(t *testing.T, list runtime.Object) []string {
	t.Helper()
	var names []string
	err := meta.EachListItem(list, func(obj runtime.Object) error {
		names = append(names, obj.(*object).Name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func TestReadsAreRestrictedToTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mustCreate(role("open"))
	hidden := w.mustCreate(role("hidden"))
	w.closeObject(hidden)

	if _, err := w.main.Get(w.ctx, "open", &metav1.GetOptions{}); err != nil {
		t.Errorf("get: %v", err)
	}
	if _, err := w.main.Get(w.ctx, "hidden", &metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get of a hidden object: got %v, want Forbidden", err)
	}
	if _, err := w.status.Get(w.ctx, "hidden", &metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get of a hidden object's status: got %v, want Forbidden", err)
	}
	if _, err := w.main.Get(w.ctx, "absent", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of an absent object: got %v, want NotFound", err)
	}
	list, err := w.main.List(w.ctx, &metav1internal.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := namesOf(t, list); !slices.Equal(got, []string{"open"}) {
		t.Errorf("list: got %q, want open", got)
	}
	w.authorizer.deny("get", "list", "delete")
	for _, name := range []string{"open", "absent"} {
		if _, err := w.main.Get(w.ctx, name, &metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("get of %s without permission: got %v, want Forbidden", name, err)
		}
		if _, _, err := w.main.Delete(w.ctx, name, nil, &metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("delete of %s without permission: got %v, want Forbidden", name, err)
		}
	}
	if list, err = w.main.List(w.ctx, &metav1internal.ListOptions{}); err != nil || len(namesOf(t, list)) != 0 {
		t.Errorf("list without permission: got %v, %v, want an empty list", list, err)
	}
}

// closeObject moves an object to the instance that no caller may access.
func (w *world) closeObject(o *object) {
	w.Helper()
	_, err := w.update(w.main, o.Name, func(o *object) { o.Labels["instance"] = "closed" })
	if err != nil {
		w.Fatal(err)
	}
	w.kind.recorded()
}

func TestWatchIsRestrictedToTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.mustCreate(role("first"))
	watcher, err := w.main.Watch(w.ctx, &metav1internal.ListOptions{ResourceVersion: first.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	w.closeObject(first) // not sent
	w.mustCreate(role("second"))
	if event := <-watcher.ResultChan(); event.Type != watch.Added || event.Object.(*object).Name != "second" {
		t.Errorf("event: got %s of %v, want second added", event.Type, event.Object)
	}
	w.authorizer.deny("watch")
	w.mustCreate(role("third"))
	if event := <-watcher.ResultChan(); event.Type != watch.Error ||
		event.Object.(*metav1.Status).Reason != metav1.StatusReasonUnauthorized {
		t.Errorf("event after the permission was withdrawn: got %s %v, want an error", event.Type, event.Object)
	}
	if _, open := <-watcher.ResultChan(); open {
		t.Error("watch continues without permission, want it ended")
	}
}

func TestDeleteCollectionDeletesWhatTheCallerMayDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "hidden"} {
		o := w.mustCreate(role(name))
		if name == "hidden" {
			w.closeObject(o)
		}
	}
	out, err := w.main.DeleteCollection(w.ctx, nil, &metav1.DeleteOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := namesOf(t, out); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("deleted: got %q, want a and b", got)
	}
	w.wantCalls("remove", "remove")
	if n, err := w.resource.Count(w.ctx, "acme"); err != nil || n != 1 {
		t.Errorf("objects left: got %d, %v, want 1", n, err)
	}
}

func TestLookups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		o := role(name)
		if o.Spec.Description = "x"; name == "c" {
			o.Spec.Description = "y"
		}
		if name == "b" {
			o.Annotations = map[string]string{v1alpha1.AnnotationDestroyProtected: "true"}
		}
		w.mustCreate(o)
	}
	names, protected, err := w.resource.NamesWhere(w.ctx, "acme", "spec.description", "x")
	if err != nil || !slices.Equal(names, []string{"a", "b"}) || !slices.Equal(protected, []string{"b"}) {
		t.Errorf("names: got %q, protected %q, %v, want a and b, protected b", names, protected, err)
	}
	if n, err := w.resource.Count(w.ctx, "other"); err != nil || n != 0 {
		t.Errorf("objects of another organization: got %d, %v, want 0", n, err)
	}
	if _, ok := w.resource.Lookup(w.ctx, "other", "a"); ok {
		t.Error("object of another organization was found")
	}
	if o, ok := w.resource.Object(w.ctx, "acme", "a"); !ok || o.(*object).Name != "a" {
		t.Errorf("object: got %v, %v, want a", o, ok)
	}
	if scope := w.resource.Scope(w.ctx, "acme", "a"); scope.Organization != "acme" {
		t.Errorf("scope: got %+v, want organization acme", scope)
	}
}
