package schemas

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAvroChanges(t *testing.T) {
	t.Parallel()
	r := openRegistry(t, openJournal(t))
	rec := func(fields string) string { return `{"type":"record","name":"R","fields":[` + fields + `]}` }
	for name, c := range map[string]struct {
		old, next string
		want      []string // type path compatible
	}{
		"nothing":        {rec(`{"name":"a","type":"int"}`), rec(`{"name":"a","type":{"type":"int"}}`), nil},
		"optional field": {rec(``), rec(`{"name":"a","type":"int","default":1}`), []string{"FIELD_ADDED /a true"}},
		"field":          {rec(``), rec(`{"name":"a","type":"int"}`), []string{"FIELD_ADDED /a false"}},
		"field removed":  {rec(`{"name":"a","type":"int"}`), rec(``), []string{"FIELD_REMOVED /a true"}},
		"promotion": {
			rec(`{"name":"a","type":"int"}`), rec(`{"name":"a","type":"long"}`),
			[]string{"TYPE_CHANGED /a true"},
		},
		"other type": {
			rec(`{"name":"a","type":"int"}`), rec(`{"name":"a","type":"string"}`),
			[]string{"TYPE_CHANGED /a false"},
		},
		"default": {
			rec(`{"name":"a","type":"int","default":1}`), rec(`{"name":"a","type":"int","default":2}`),
			[]string{"DEFAULT_CHANGED /a true"},
		},
		"default of a new type": {
			rec(`{"name":"a","type":"int","default":3}`), rec(`{"name":"a","type":"double","default":3}`),
			[]string{"TYPE_CHANGED /a true"},
		},
		"default of many digits": {
			rec(`{"name":"a","type":"long","default":9007199254740993}`),
			rec(`{"name":"a","type":"long","default":9007199254740992}`),
			[]string{"DEFAULT_CHANGED /a true"},
		},
		"one name in two namespaces": {
			`["null",{"type":"fixed","name":"a.F","size":1},{"type":"fixed","name":"b.F","size":2}]`,
			`["null",{"type":"fixed","name":"a.F","size":1},{"type":"fixed","name":"b.F","size":2}]`,
			nil,
		},
		"used by full name": {
			rec(`{"name":"a","type":{"type":"fixed","name":"n.F","size":1}},{"name":"b","type":"n.F"}`),
			rec(`{"name":"a","type":{"type":"fixed","name":"n.F","size":1}},{"name":"b","type":"int"}`),
			[]string{"TYPE_CHANGED /b false"},
		},
		"docs": {
			rec(`{"name":"a","type":"int","doc":"x"}`), rec(`{"name":"a","type":"int","doc":"y"}`),
			[]string{"DOC_CHANGED /a true"},
		},
		"name": {
			`{"type":"fixed","name":"F","size":1}`, `{"type":"fixed","name":"G","size":1}`,
			[]string{"NAME_CHANGED / false"},
		},
		"size": {
			`{"type":"fixed","name":"F","size":1}`, `{"type":"fixed","name":"F","size":2}`,
			[]string{"SIZE_CHANGED / false"},
		},
		"symbols": {
			`{"type":"enum","name":"E","symbols":["A","B"]}`,
			`{"type":"enum","name":"E","symbols":["B","C"]}`,
			[]string{"SYMBOL_ADDED / true", "SYMBOL_REMOVED / false"},
		},
		"symbols and default": {
			`{"type":"enum","name":"E","symbols":["A","B"]}`,
			`{"type":"enum","name":"E","symbols":["B"],"default":"B"}`,
			[]string{"SYMBOL_REMOVED / true", "DEFAULT_CHANGED / true"},
		},
		"branches": {`["null","string"]`, `["null","int"]`, []string{"BRANCH_REMOVED / false", "BRANCH_ADDED / true"}},
		"items": {
			`{"type":"array","items":"int"}`, `{"type":"array","items":"string"}`,
			[]string{"TYPE_CHANGED [] false"},
		},
		"values": {`{"type":"map","values":"int"}`, `{"type":"map","values":"long"}`, []string{"TYPE_CHANGED {} true"}},
		"logical type": {
			`"long"`, `{"type":"long","logicalType":"timestamp-millis"}`,
			[]string{"LOGICAL_TYPE_CHANGED / true"},
		},
		"nested": {
			rec(`{"name":"n","type":["null",{"type":"record","name":"N","fields":[]}]}`),
			rec(`{"name":"n","type":["null",{"type":"record","name":"N","fields":[{"name":"x","type":"int"}]}]}`),
			[]string{"FIELD_ADDED /n/x false"},
		},
		"recursive": {
			rec(`{"name":"next","type":["null","R"]},{"name":"a","type":"int"}`),
			rec(`{"name":"next","type":["null","R"]},{"name":"a","type":"long"}`),
			[]string{"TYPE_CHANGED /a true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := r.Diff(t.Context(), DiffOperand{Subject: "s", Draft: &Draft{Type: Avro, Text: c.old}},
				DiffOperand{Subject: "s", Draft: &Draft{Type: Avro, Text: c.next}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, ch := range d.Changes {
				got = append(got, fmt.Sprintf("%s %s %t", ch.Type, ch.Path, ch.Compatible))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			allFine := !slices.ContainsFunc(d.Changes, func(ch Change) bool { return !ch.Compatible })
			if allFine != d.Backward.Compatible {
				t.Errorf("changes are %q, but the backward result is %+v", got, d.Backward)
			}
		})
	}
}

func TestDiffRejectsInvalidOperands(t *testing.T) {
	t.Parallel()
	r := openRegistry(t, openJournal(t))
	mustRegister(t, r, "s", `"int"`)
	good := DiffOperand{Subject: "s", Version: 1}
	for name, c := range map[string]struct {
		side DiffOperand
		want error
	}{
		"unknown subject": {DiffOperand{Subject: "x", Version: 1}, ErrSubjectNotFound},
		"unknown version": {DiffOperand{Subject: "s", Version: 2}, ErrVersionNotFound},
		"bad draft":       {DiffOperand{Subject: "s", Draft: &Draft{Type: Avro, Text: "x"}}, ErrInvalidSchema},
	} {
		if _, err := r.Diff(t.Context(), good, c.side); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if _, err := r.Diff(t.Context(), c.side, good); !errors.Is(err, c.want) {
			t.Errorf("%s as the old schema: got %v, want %v", name, err, c.want)
		}
	}
	d, err := r.Diff(t.Context(), good, DiffOperand{Subject: "s", Draft: &Draft{Type: JSON, Text: "{}"}})
	if err != nil || len(d.Changes) != 1 || !strings.Contains(d.Changes[0].Type, "TYPE") || len(d.Levels) != 0 {
		t.Errorf("another language: got %+v, %v, want one change of the type and no level", d, err)
	}
}
