// Package validationtest compares what a kind's rules found with what a test
// expects. It knows no kind, so that the tests beside every kind can use it.
package validationtest

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Expect fails the test unless errs are about exactly the wanted fields. Each is
// written as the answer to a caller begins: "spec.email: Required value".
func Expect(t testing.TB, errs field.ErrorList, want ...string) {
	t.Helper()
	got := make([]string, 0, len(errs))
	for _, err := range errs {
		got = append(got, err.Field+": "+err.Type.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q\n%v", got, want, errs.ToAggregate())
	}
}
