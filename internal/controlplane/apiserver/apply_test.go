package apiserver_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	apply "freshet/api/generated/applyconfiguration/api/v1alpha1"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/kindstest"
)

func TestTypedApply(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	clusters := connect(t, s).typed.CloudV1alpha1().MessagingClusters("acme")
	one := apply.MessagingCluster("c", "acme").WithSpec(apply.MessagingClusterSpec().
		WithInstanceName("i").WithLocation("local").WithBroker(apply.Broker().WithReplicas(3)).
		WithConfig(apply.ClusterConfig().WithCustom(map[string]string{"a": "1"})))
	created, err := clusters.Apply(t.Context(), one, metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if *created.Spec.Broker.Replicas != 3 || created.Spec.ReleaseChannel != "rapid" {
		t.Errorf("applied spec: got %+v, want 3 brokers and channel rapid", created.Spec)
	}

	two := apply.MessagingCluster("c", "acme").WithSpec(apply.MessagingClusterSpec().
		WithInstanceName("i").WithBroker(apply.Broker().WithReplicas(5)).
		WithConfig(apply.ClusterConfig().WithCustom(map[string]string{"b": "2"})))
	_, err = clusters.Apply(t.Context(), two, metav1.ApplyOptions{FieldManager: "two"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `"one"`) ||
		!strings.Contains(err.Error(), ".spec.broker.replicas") {
		t.Fatalf("applying a field of another manager: got %v, want a conflict with the manager and the field", err)
	}
	forced, err := clusters.Apply(t.Context(), two, metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if *forced.Spec.Broker.Replicas != 5 ||
		!maps.Equal(forced.Spec.Config.Custom, map[string]string{"a": "1", "b": "2"}) {
		t.Errorf("forced apply: got %+v, want 5 brokers and both custom keys", forced.Spec)
	}
	// The manager that lost the field can continue with the rest, and release it.
	one.Spec.Broker = nil
	one.Spec.Config.Custom = map[string]string{}
	left, err := clusters.Apply(t.Context(), one, metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if *left.Spec.Broker.Replicas != 5 || !maps.Equal(left.Spec.Config.Custom, map[string]string{"b": "2"}) {
		t.Errorf("after releasing fields: got %+v, want 5 brokers and custom key b", left.Spec)
	}
}

func TestTypedApplyOfStatus(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	c := connect(t, s)
	c.createUsers(t, "ann")
	users := c.binary.CloudV1alpha1().Users("acme")
	for manager, kind := range map[string]string{"one": "Ready", "two": "Known"} {
		status := apply.User("ann", "acme").WithStatus(apply.UserStatus().
			WithConditions(apply.Condition().WithType(kind).WithStatus(v1alpha1.ConditionTrue).WithReason(manager)))
		if _, err := users.ApplyStatus(t.Context(), status, metav1.ApplyOptions{FieldManager: manager}); err != nil {
			t.Fatal(err)
		}
	}
	// Each manager owns the condition of its own type, and removes only that.
	got, err := users.ApplyStatus(t.Context(), apply.User("ann", "acme").WithStatus(apply.UserStatus()),
		metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, c := range got.Status.Conditions {
		kinds = append(kinds, c.Type)
	}
	if want := []string{"Known"}; !slices.Equal(kinds, want) {
		t.Errorf("conditions: got %q, want %q", kinds, want)
	}
}

func TestDynamicApply(t *testing.T) {
	t.Parallel()
	s := kindstest.Start(t, kindstest.Options{})
	users := connect(t, s).dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource("users")).Namespace("acme")
	user := func(email, label string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "User",
			"metadata": map[string]any{"name": "ann", "labels": map[string]any{label: "yes"}},
			"spec":     map[string]any{"email": email},
		}}
	}
	if _, err := users.Apply(t.Context(), "ann", user("a@example.com", "one"),
		metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		t.Fatal(err)
	}
	// Equal values are shared and cause no conflict.
	shared, err := users.Apply(t.Context(), "ann", user("a@example.com", "two"),
		metav1.ApplyOptions{FieldManager: "two"})
	if err != nil {
		t.Fatal(err)
	}
	if got := shared.GetLabels(); len(got) != 2 {
		t.Errorf("labels: got %v, want one of each manager", got)
	}
	if _, err = users.Apply(t.Context(), "ann", user("b@example.com", "two"),
		metav1.ApplyOptions{FieldManager: "two"}); !apierrors.IsConflict(err) {
		t.Errorf("changing a shared value: got %v, want a conflict", err)
	}
	forced, err := users.Apply(t.Context(), "ann", user("b@example.com", "two"),
		metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if email, _, _ := unstructured.NestedString(forced.Object, "spec", "email"); email != "b@example.com" {
		t.Errorf("forced apply: got spec %v, want the email b@example.com", forced.Object["spec"])
	}
	bad := user("b@example.com", "two")
	bad.Object["spec"].(map[string]any)["surplus"] = "x"
	if _, err := users.Apply(t.Context(), "ann", bad, metav1.ApplyOptions{FieldManager: "two"}); err == nil ||
		!strings.Contains(err.Error(), "surplus") {
		t.Errorf("unknown field: got %v, want an error that names it", err)
	}
}
