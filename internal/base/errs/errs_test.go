package errs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/base/errs"
)

func TestKindOfFindsTheOutermostKind(t *testing.T) {
	t.Parallel()
	sentinel := errs.New(errs.NotFound, "topic does not exist")
	tests := map[string]struct {
		err  error
		want errs.Kind
	}{
		"sentinel":          {sentinel, errs.NotFound},
		"wrapped":           {fmt.Errorf("consume: %w", sentinel), errs.NotFound},
		"reclassified":      {errs.Newf(errs.Conflict, "delete: %w", sentinel), errs.Conflict},
		"of no kind":        {errors.New("disk on fire"), errs.Internal},
		"nothing":           {nil, errs.Internal},
		"newf without verb": {errs.Newf(errs.TooLarge, "body over %d bytes", 5), errs.TooLarge},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := errs.KindOf(tc.err); got != tc.want {
				t.Errorf("KindOf(%v) = %v, want %v", tc.err, got, tc.want)
			}
		})
	}
}

func TestReclassifiedErrorKeepsItsCause(t *testing.T) {
	t.Parallel()
	sentinel := errs.New(errs.NotFound, "topic does not exist")
	err := errs.Newf(errs.Conflict, "delete: %w", sentinel)
	if !errors.Is(err, sentinel) {
		t.Error("errors.Is with the wrapped sentinel: got false, want true")
	}
	if got, want := err.Error(), "delete: topic does not exist"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}

func TestEveryKindHasAName(t *testing.T) {
	t.Parallel()
	for k := range errs.KindCount {
		if k.String() == "" || strings.HasPrefix(k.String(), "kind(") {
			t.Errorf("name of kind %d: got %q, want one in kindNames", k, k.String())
		}
	}
}
