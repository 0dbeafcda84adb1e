// Package validationtest compares the errors of validation rules with those that a test expects. It
// depends on no kind, so that the tests of every kind can use it.
package validationtest

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Expect fails the test unless errs are about exactly the wanted fields. Each is written like the
// beginning of the error text: "spec.email: Required value".
func Expect(t testing.TB, errs field.ErrorList, want ...string) {
	t.Helper()
	got := make([]string, 0, len(errs))
	for _, err := range errs {
		got = append(got, err.Field+": "+err.Type.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q\n%v", got, want, errs.ToAggregate())
	}
}
