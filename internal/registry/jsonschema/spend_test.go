package jsonschema

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var errSpent = errors.New("enough")

// counter counts steps, and returns an error after left steps.
type counter struct{ left, spent int }

func (c *counter) spend(steps int) error {
	if c.spent += steps; c.spent > c.left {
		return errSpent
	}
	return nil
}

// Expensive work is reported while it runs, and ends with the error of spend.
func TestWorkEndsWithTheErrorOfSpend(t *testing.T) {
	t.Parallel()
	patterns := func(n, length int) string {
		return obj(list(n, func(i int) string {
			return fmt.Sprintf(`"p%d":{"pattern":"%d%s"}`, i, i, strings.Repeat(`[\\p{L}]+`, length))
		}), "")
	}
	for name, text := range map[string]string{
		"patterns": patterns(50, 200),
		"references": obj(list(3000,
			func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/properties/q%d"},"q%d":{}`, i, i, i) }), ""),
	} {
		c := &counter{left: 3}
		if _, err := Parse(text, nil, c.spend); !errors.Is(err, errSpent) {
			t.Errorf("%s: got %v, want %v", name, err, errSpent)
		}
	}
	union := func(n int, name string) *Schema {
		return mustParse(t, `{"oneOf":[`+list(n, func(i int) string {
			return obj(fmt.Sprintf(`"%s%d":{"type":"string"}`, name, i), "")
		})+`]}`)
	}
	c := &counter{left: 100_000}
	if _, err := Compare(union(800, "a"), union(800, "b"), c.spend); !errors.Is(err, errSpent) ||
		c.spent > c.left+2*spendEvery {
		t.Errorf("comparing: got %v after %d steps, want %v after %d", err, c.spent, errSpent, c.left)
	}
	c = &counter{left: maxWork}
	if _, err := Compare(union(4_000, "a"), union(4_000, "b"), c.spend); !errors.Is(err, ErrTooComplex) ||
		c.spent > 100_000 {
		t.Errorf("too complex: got %v after %d steps, want %v immediately", err, c.spent, ErrTooComplex)
	}
}
