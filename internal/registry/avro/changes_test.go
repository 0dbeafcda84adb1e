package avro_test

import (
	"fmt"
	"strings"
	"testing"

	"freshet/internal/registry/avro"
)

func TestChangeTexts(t *testing.T) {
	t.Parallel()
	field := func(rest string) string {
		return `{"type":"record","name":"R","fields":[{"name":"a",` + rest + `}]}`
	}
	for name, c := range map[string]struct{ old, next, want string }{
		"default added": {
			field(`"type":["null","int"]`), field(`"type":["null","int"],"default":null`),
			"default none became null",
		},
		"default": {
			field(`"type":"double","default":1`), field(`"type":"double","default":1e30`),
			"default 1.0 became 1.0E30",
		},
		"aliases": {
			`{"type":"fixed","name":"F","size":1}`,
			`{"type":"fixed","name":"F","size":1,"aliases":["H","G"]}`, `aliases [] became ["G","H"]`,
		},
		"type": {
			field(`"type":"int"`),
			field(`"type":{"type":"enum","name":"n.E","symbols":[]}`),
			"int became enum E",
		},
		"branch removed": {`["null","int"]`, `["null"]`, "int was removed from the union"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := avro.Changes(mustParse(t, c.old), mustParse(t, c.next), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || got[0].Text != c.want {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}

// TestChangesAreBounded compares two cycles of records whose lengths have no common divisor,
// so that every pair of records is compared.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	ring := func(n int, leaf string) *avro.Schema {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"type":"record","name":"R%d","fields":[{"name":"next","type":"R%d"},`+
				`{"name":"v","type":"%s"}]}`, i, (i+1)%n, leaf)
		}
		return mustParse(t, "["+b.String()[1:]+"]")
	}
	steps := 0
	spend := func(n int) error { steps += n; return nil }
	if _, err := avro.Changes(ring(150, "int"), ring(149, "long"), spend); err != nil {
		t.Fatal(err)
	}
	if steps == 0 || steps > 40<<20 { // check and comparison stop after about 16 Mi steps each
		t.Errorf("got %d steps, want at most %d", steps, 40<<20)
	}
}
