package reconcile_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/reconcile"
)

func TestIndexFindsWithinANamespace(t *testing.T) {
	t.Parallel()
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.APIKey{}, 0, cache.Indexers{})
	keys, err := reconcile.Index(informer, "by account",
		func(k *v1alpha1.APIKey) string { return k.Spec.ServiceAccountName })
	if err != nil {
		t.Fatal(err)
	}
	key := func(namespace, name, account string) *v1alpha1.APIKey {
		return &v1alpha1.APIKey{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       v1alpha1.APIKeySpec{ServiceAccountName: account},
		}
	}
	store := informer.GetIndexer()
	for _, k := range []*v1alpha1.APIKey{
		key("acme", "a", "ci"), key("acme", "b", "ci"), key("acme", "c", "other"), key("acme", "d", ""),
		key("else", "e", "ci"),
	} {
		if err := store.Add(k); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(account string, want ...string) {
		t.Helper()
		var got []string
		for _, k := range keys("acme", account) {
			got = append(got, k.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("keys of %q: got %v, want %v", account, got, want)
		}
	}
	expect("ci", "a", "b")
	expect("other", "c")
	expect("")
	expect("nobody")
	if err := store.Update(key("acme", "b", "other")); err != nil {
		t.Fatal(err)
	}
	expect("ci", "a")
	expect("other", "b", "c")
	if _, err := reconcile.Index(informer, "by account", func(*v1alpha1.APIKey) string { return "" }); err == nil {
		t.Error("second index of the same name: got no error, want one")
	}
}
