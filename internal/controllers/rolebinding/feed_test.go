package rolebinding_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/controllers/rolebinding"
	"freshet/internal/identity"
	"freshet/internal/resources"
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
	return request.WithUser(context.Background(), resources.Caller{Principal: p})
}

func TestLateNewsChangesNothing(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	feed := rolebinding.Feed{Policy: policy}
	robot := &identity.Principal{Name: "robot", Organization: "acme", ServiceAccount: "robot"}
	may := func() bool {
		_, err := policy.Authorize(t.Context(), robot, "cloud.users.list", access.Scope{Organization: "acme"})
		return err == nil
	}
	feed.Put(binding("b", 5, "org-readonly", "robot"))
	if !may() {
		t.Fatal("a binding is not in force")
	}
	feed.Put(binding("b", 7, "org-readonly"))
	feed.Put(binding("b", 6, "org-readonly", "robot"))
	if may() {
		t.Error("an older event brought a subject back")
	}
	feed.Put(binding("b", 8, "org-readonly", "robot"))
	feed.Remove(binding("b", 9, "org-readonly", "robot"))
	feed.Put(binding("b", 8, "org-readonly", "robot"))
	if may() {
		t.Error("an older event brought a binding back")
	}
	gone := binding("b", 12, "org-readonly", "robot")
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	feed.Put(binding("b", 11, "org-readonly", "robot"))
	feed.Put(gone)
	if may() {
		t.Error("a binding that somebody's finalizer holds is in force")
	}
}

func TestQuota(t *testing.T) {
	t.Parallel()
	policy := access.NewPolicy()
	feed := rolebinding.Feed{Policy: policy}
	boss := as(&identity.Principal{Name: "boss", Organization: "acme", Admin: true})
	may := feed.Rules().MayGrant
	for i := range rolebinding.MaxBindings {
		feed.Put(binding(strconv.Itoa(i), i+1, "org-readonly"))
	}
	err := may(boss, binding("one-more", 0, "org-readonly"), true)
	if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("binding %d: %v", rolebinding.MaxBindings+1, err)
	}
	if err := may(boss, binding("0", 1, "org-readonly"), false); err != nil {
		t.Errorf("a change of one that is there: %v", err)
	}
	if err := may(t.Context(), binding("ours", 0, "org-readonly"), true); err != nil {
		t.Errorf("the service itself: %v", err)
	}
	feed.Remove(binding("0", 100_000, "org-readonly"))
	if err := may(boss, binding("one-more", 0, "org-readonly"), true); err != nil {
		t.Errorf("after one went: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	check := rolebinding.Feed{}.Rules().Check
	if err := check(binding("b", 1, "org-readonly", "robot")); err != nil {
		t.Errorf("a good one: %v", err)
	}
	foreign := binding("b", 1, "org-readonly", "robot")
	foreign.Spec.Subjects[0].Namespace = "elsewhere"
	if err := check(foreign); err == nil || err.Field != "spec.subjects[0].namespace" {
		t.Errorf("a subject of another organization: %v", err)
	}
}
