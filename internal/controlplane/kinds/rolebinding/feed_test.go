package rolebinding_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/kinds/rolebinding"
	"freshet/internal/controlplane/validation/validationtest"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

func binding(name string, revision int, role string, accounts ...string) *v1alpha1.RoleBinding {
	o := &v1alpha1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: name, ResourceVersion: strconv.Itoa(revision)},
		Spec:       v1alpha1.RoleBindingSpec{RoleRef: v1alpha1.RoleRef{Kind: "ClusterRole", Name: role}},
	}
	for _, account := range accounts {
		o.Spec.Subjects = append(o.Spec.Subjects, v1alpha1.Subject{Kind: "ServiceAccount", Name: account})
	}
	return o
}

func as(p *identity.Principal) context.Context {
	return request.WithUser(context.Background(), caller.Caller{Principal: p})
}

func allowed(t *testing.T, policy *access.Policy, principal *identity.Principal) bool {
	t.Helper()
	_, err := policy.Authorize(t.Context(), principal, "cloud.users.list", access.Scope{Organization: "acme"})
	return err == nil
}

func TestFeedIgnoresOlderEvents(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	feed := rolebinding.New(policy)
	robot := &identity.Principal{Name: "robot", Organization: "acme", ServiceAccount: "robot"}
	may := func() bool {
		return allowed(t, policy, robot)
	}
	feed.Put(binding("b", 5, "org-readonly", "robot"))
	if !may() {
		t.Fatal("new binding has no effect")
	}
	feed.Put(binding("b", 7, "org-readonly"))
	feed.Put(binding("b", 6, "org-readonly", "robot"))
	if may() {
		t.Error("older event restored a subject")
	}
	feed.Put(binding("b", 8, "org-readonly", "robot"))
	feed.Remove(binding("b", 9, "org-readonly", "robot"))
	feed.Put(binding("b", 8, "org-readonly", "robot"))
	if may() {
		t.Error("older event restored a binding")
	}
	deleted := binding("b", 12, "org-readonly", "robot")
	now := metav1.Now()
	deleted.DeletionTimestamp = &now
	feed.Put(binding("b", 11, "org-readonly", "robot"))
	feed.Put(deleted)
	if may() {
		t.Error("binding that is being deleted is still in effect")
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	feed := rolebinding.New(policy)
	boss := as(&identity.Principal{Name: "boss", Organization: "acme", Admin: true})
	may := feed.Admit
	for i := range rolebinding.MaxBindings {
		feed.Put(binding(strconv.Itoa(i), i+1, "org-readonly"))
	}
	err := may(boss, binding("one-more", 0, "org-readonly"), nil)
	if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("binding %d: got %v, want exceeded quota", rolebinding.MaxBindings+1, err)
	}
	if err := may(boss, binding("0", 1, "org-readonly"), binding("0", 1, "org-readonly", "robot")); err != nil {
		t.Errorf("changing an existing binding: %v", err)
	}
	if err := may(t.Context(), binding("ours", 0, "org-readonly"), nil); err != nil {
		t.Errorf("binding created by the service: %v", err)
	}
	feed.Remove(binding("0", 100_000, "org-readonly"))
	if err := may(boss, binding("one-more", 0, "org-readonly"), nil); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

func TestSubjectsAreOfTheOrganization(t *testing.T) {
	t.Parallel()
	kind := rolebinding.New(access.NewPolicy())
	validationtest.Expect(t, kind.Validate(t.Context(), binding("b", 1, "org-readonly", "robot")))
	foreign := binding("b", 1, "org-readonly", "robot")
	foreign.Spec.Subjects[0].Namespace = "elsewhere"
	validationtest.Expect(t, kind.Validate(t.Context(), foreign), "spec.subjects[0].namespace: Invalid value")
}
