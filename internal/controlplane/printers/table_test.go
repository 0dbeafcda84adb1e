package printers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/printers"
)

func table() printers.Table {
	return printers.Table{Columns: append(
		printers.Conditions(
			func(o runtime.Object) []v1alpha1.Condition { return o.(*v1alpha1.User).Status.Conditions }),
		printers.Column{
			Name: "Email", Description: "Where to write to.", Wide: true,
			Value: func(o runtime.Object) any { return o.(*v1alpha1.User).Spec.Email },
		},
	)}
}

func user(name string, conditions ...v1alpha1.Condition) *v1alpha1.User {
	return &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "7",
			CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
		},
		Spec:   v1alpha1.UserSpec{Email: name + "@example.com"},
		Status: v1alpha1.UserStatus{Conditions: conditions},
	}
}

func TestOneObject(t *testing.T) {
	t.Parallel()
	got, err := table().ConvertToTable(t.Context(), user("ann", v1alpha1.Condition{Type: "Other", Status: "False"},
		v1alpha1.Condition{Type: "Ready", Status: "True", Reason: "Welcome"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range got.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s %s %d", c.Name, c.Type, c.Priority))
		if c.Description == "" {
			t.Errorf("column %s has no description", c.Name)
		}
	}
	want := []string{"Name string 0", "Ready string 0", "Reason string 0", "Email string 1", "Age string 0"}
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("columns differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"ann", "True", "Welcome", "ann@example.com", "3h"}, got.Rows[0].Cells); diff != "" {
		t.Errorf("cells differ (-want +got):\n%s", diff)
	}
	if got.ResourceVersion != "7" {
		t.Errorf("resourceVersion: got %q, want the object's", got.ResourceVersion)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	left := int64(5)
	list := &v1alpha1.UserList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: &left},
		Items:    []v1alpha1.User{*user("ann"), *user("bob")},
	}
	got, err := table().ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.ColumnDefinitions) != 0 {
		t.Error("got headers, want none with NoHeaders")
	}
	if len(got.Rows) != 2 || got.Rows[1].Cells[0] != "bob" {
		t.Errorf("rows: got %v, want ann and bob", got.Rows)
	}
	if got.Rows[0].Cells[1] != "Unknown" || got.Rows[0].Cells[2] != "" {
		t.Errorf("object without conditions: got %v %v, want Unknown and no reason", got.Rows[0].Cells[1],
			got.Rows[0].Cells[2])
	}
	if got.ResourceVersion != "9" || got.Continue != "more" || *got.RemainingItemCount != 5 {
		t.Errorf("list metadata: got %+v, want that of the list", got.ListMeta)
	}
}

func TestAgeWithoutCreationTime(t *testing.T) {
	t.Parallel()
	if got := printers.Age(metav1.Time{}); got != "<unknown>" {
		t.Errorf("age: got %q, want <unknown>", got)
	}
}
