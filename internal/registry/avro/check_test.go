package avro_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"freshet/internal/registry/avro"
)

// Short forms for the tables below.
const (
	point2 = `{"type":"record","name":"Point","fields":[{"name":"x","type":"int"},{"name":"y","type":"int"}]}`
	enumAB = `{"type":"enum","name":"E","symbols":["A","B"]}`
	fixed4 = `{"type":"fixed","name":"F","size":4}`
)

func record(name string, fields ...string) string {
	return `{"type":"record","name":"` + name + `","fields":[` + strings.Join(fields, ",") + `]}`
}

func TestReaderCanRead(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reader, writer string }{
		"the same":                 {point2, point2},
		"int as long":              {`"long"`, `"int"`},
		"int as float":             {`"float"`, `"int"`},
		"int as double":            {`"double"`, `"int"`},
		"long as float":            {`"float"`, `"long"`},
		"long as double":           {`"double"`, `"long"`},
		"float as double":          {`"double"`, `"float"`},
		"string as bytes":          {`"bytes"`, `"string"`},
		"bytes as string":          {`"string"`, `"bytes"`},
		"items that are promoted":  {`{"type":"array","items":"long"}`, `{"type":"array","items":"int"}`},
		"values that are promoted": {`{"type":"map","values":"long"}`, `{"type":"map","values":"int"}`},
		"a logical type added":     {`{"type":"int","logicalType":"date"}`, `"int"`},
		"another decimal": {
			`{"type":"bytes","logicalType":"decimal","precision":9,"scale":1}`,
			`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`,
		},
		"a field removed": {
			record("R", `{"name":"a","type":"int"}`),
			record("R", `{"name":"a","type":"int"}`, `{"name":"b","type":"int"}`),
		},
		"a field added with a default": {record("R", `{"name":"a","type":"int"}`,
			`{"name":"b","type":"int","default":0}`), record("R", `{"name":"a","type":"int"}`)},
		"a field added with null as default": {
			record("R", `{"name":"b","type":["null","int"],"default":null}`),
			record("R"),
		},
		"fields in another order": {record("R", `{"name":"a","type":"int"}`,
			`{"name":"b","type":"string"}`), record("R", `{"name":"b","type":"string"}`, `{"name":"a","type":"int"}`)},
		"a field renamed with an alias": {
			record("R", `{"name":"new","type":"int","aliases":["old"]}`),
			record("R", `{"name":"old","type":"int"}`),
		},
		"a record renamed with an alias": {
			`{"type":"record","name":"New","aliases":["Old"],"fields":[]}`,
			record("Old"),
		},
		"another namespace": {
			`{"type":"record","name":"n.R","fields":[]}`,
			`{"type":"record","name":"m.R","fields":[]}`,
		},
		"an alias in a namespace": {
			`{"type":"fixed","name":"n.New","aliases":["m.Old"],"size":1}`,
			`{"type":"fixed","name":"m.Old","size":1}`,
		},
		"an enum that grew":                {`{"type":"enum","name":"E","symbols":["A","B","C"]}`, enumAB},
		"an enum with a default":           {`{"type":"enum","name":"E","symbols":["A","X"],"default":"X"}`, enumAB},
		"a union that grew":                {`["null","int","string"]`, `["null","int"]`},
		"a union in another order":         {`["int","null"]`, `["null","int"]`},
		"a type that became a branch":      {`["null","int"]`, `"int"`},
		"a type promoted into a branch":    {`["null","double"]`, `"int"`},
		"a union of what the reader reads": {`"double"`, `["int","long","float"]`},
		"a union of one type":              {`"int"`, `["int"]`},
		"an empty union":                   {`"int"`, `[]`},
		"a list": {
			`{"type":"record","name":"L","fields":[{"name":"v","type":"long"},{"name":"next","type":["null","L"]}]}`,
			`{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","L"]}]}`,
		},
		"a list, flattened": {
			`{"type":"record","name":"L","fields":[{"name":"next","type":["null",` +
				`{"type":"record","name":"M","aliases":["L"],"fields":[{"name":"next","type":["null","L"]}]}]}]}`,
			`{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}`,
		},
		"docs, orders and properties": {
			`{"type":"record","name":"R","doc":"a","fields":[{"name":"f","type":"int","doc":"b","order":"ignore",` +
				`"p":1}],"q":1}`,
			record("R", `{"name":"f","type":"int"}`),
		},
		"an error for a record": {`{"type":"error","name":"R","fields":[]}`, record("R")},
		"a field default that only the old lacks": {
			record("R", `{"name":"f","type":"int"}`),
			record("R", `{"name":"f","type":"int","default":1}`),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := problemsOf(mustParse(t, tc.reader), mustParse(t, tc.writer)); len(got) != 0 {
				t.Errorf("got problems %v, want none", got)
			}
		})
	}
}

func TestReaderCannotRead(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reader, writer string
		want           []avro.Incompatibility
	}{
		"type: at the root": {
			`"int"`, `"string"`,
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: INT not compatible with writer type: STRING",
				"/",
			}},
		},
		"type: narrowed": {
			`"int"`, `"long"`,
			[]avro.Incompatibility{{avro.TypeMismatch, "reader type: INT not compatible with writer type: LONG", "/"}},
		},
		"type: float as long": {
			`"long"`, `"float"`,
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: LONG not compatible with writer type: FLOAT",
				"/",
			}},
		},
		"type: inside an array": {
			`{"type":"array","items":"int"}`, `{"type":"array","items":"long"}`,
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: INT not compatible with writer type: LONG",
				"/items",
			}},
		},
		"type: inside a map": {
			`{"type":"map","values":"boolean"}`, `{"type":"map","values":"null"}`,
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: BOOLEAN not compatible with writer type: NULL",
				"/values",
			}},
		},
		"type: of a field": {
			record("R", `{"name":"a","type":"int"}`,
				`{"name":"b","type":{"type":"map","values":{"type":"array","items":"int"}}}`),
			record("R", `{"name":"b","type":{"type":"map","values":{"type":"array","items":"string"}}}`,
				`{"name":"a","type":"int"}`),
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: INT not compatible with writer type: STRING",
				"/fields/1/type/values/items",
			}},
		},
		"type: of a branch": {
			`"int"`, `["int","string","long"]`,
			[]avro.Incompatibility{
				{avro.TypeMismatch, "reader type: INT not compatible with writer type: STRING", "/1"},
				{avro.TypeMismatch, "reader type: INT not compatible with writer type: LONG", "/2"},
			},
		},
		"type: enum for a string": {
			enumAB, `"string"`,
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: ENUM not compatible with writer type: STRING",
				"/",
			}},
		},
		"type: fixed for bytes": {
			fixed4, `"bytes"`,
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: FIXED not compatible with writer type: BYTES",
				"/",
			}},
		},
		"type: record for a map": {
			point2, `{"type":"map","values":"int"}`,
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: RECORD not compatible with writer type: MAP",
				"/",
			}},
		},
		"name: of a record": {
			record("n.A"), record("m.B"),
			[]avro.Incompatibility{{avro.NameMismatch, "expected: m.B", "/name"}},
		},
		"name: of an enum in a field": {
			record("R", `{"name":"e","type":{"type":"enum","name":"E","symbols":[]}}`),
			record("R", `{"name":"e","type":{"type":"enum","name":"G","symbols":[]}}`),
			[]avro.Incompatibility{{avro.NameMismatch, "expected: G", "/fields/0/type/name"}},
		},
		"name: the alias is the writer's": {
			record("New"), `{"type":"record","name":"Old","aliases":["New"],"fields":[]}`,
			[]avro.Incompatibility{{avro.NameMismatch, "expected: Old", "/name"}},
		},
		"name: the alias is in another namespace": {
			`{"type":"record","name":"n.New","aliases":["Old"],"fields":[]}`, record("Old"),
			[]avro.Incompatibility{{avro.NameMismatch, "expected: Old", "/name"}},
		},
		"name and size": {
			fixed4, `{"type":"fixed","name":"G","size":8}`,
			[]avro.Incompatibility{
				{avro.NameMismatch, "expected: G", "/name"},
				{avro.FixedSizeMismatch, "expected: 8, found: 4", "/size"},
			},
		},
		"size: at the root": {
			`{"type":"fixed","name":"F","size":8}`, fixed4,
			[]avro.Incompatibility{{avro.FixedSizeMismatch, "expected: 4, found: 8", "/size"}},
		},
		"size: in a field": {
			record("R", `{"name":"a","type":"int"}`, `{"name":"f","type":{"type":"fixed","name":"F","size":2}}`),
			record("R", `{"name":"a","type":"int"}`, `{"name":"f","type":{"type":"fixed","name":"F","size":3}}`),
			[]avro.Incompatibility{{avro.FixedSizeMismatch, "expected: 3, found: 2", "/fields/1/type/size"}},
		},
		"symbols: at the root": {
			enumAB, `{"type":"enum","name":"E","symbols":["D","A","C"]}`,
			[]avro.Incompatibility{{avro.MissingEnumSymbols, "[C, D]", "/symbols"}},
		},
		"symbols: in an array": {
			`{"type":"array","items":` + enumAB + `}`,
			`{"type":"array","items":{"type":"enum","name":"E","symbols":["A","B","C"],"default":"A"}}`,
			[]avro.Incompatibility{{avro.MissingEnumSymbols, "[C]", "/items/symbols"}},
		},
		"default: missing": {
			record("R", `{"name":"a","type":"int"}`, `{"name":"b","type":"int"}`),
			record("R", `{"name":"a","type":"int"}`),
			[]avro.Incompatibility{{avro.ReaderFieldNoDefault, "b", "/fields/1"}},
		},
		"default: missing in a nested record": {
			record("R", `{"name":"s","type":`+record("S", `{"name":"c","type":["null","int"]}`)+`}`),
			record("R", `{"name":"s","type":`+record("S")+`}`),
			[]avro.Incompatibility{{avro.ReaderFieldNoDefault, "c", "/fields/0/type/fields/0"}},
		},
		"default: the enum's is not the field's": {
			record("R", `{"name":"e","type":{"type":"enum","name":"E","symbols":["A"],"default":"A"}}`), record("R"),
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: ENUM not compatible with writer type: RECORD",
				"/fields/0/type",
			}},
		},
		"branch: of a smaller union": {
			`["null","int"]`, `["null","int","string"]`,
			[]avro.Incompatibility{{avro.MissingUnionBranch, "reader union lacking writer type: STRING", "/2"}},
		},
		"branch: of a union, twice": {
			record("R", `{"name":"u","type":["null","int"]}`),
			record("R", `{"name":"u","type":["boolean","int",`+fixed4+`]}`),
			[]avro.Incompatibility{
				{avro.MissingUnionBranch, "reader union lacking writer type: BOOLEAN", "/fields/0/type/0"},
				{avro.MissingUnionBranch, "reader union lacking writer type: FIXED", "/fields/0/type/2"},
			},
		},
		"branch: for a single type": {
			`["null","int"]`, `"string"`,
			[]avro.Incompatibility{{avro.MissingUnionBranch, "reader union lacking writer type: STRING", "/"}},
		},
		"branch: problems inside are not reported": {
			`["null",` + point2 + `]`, record("Point", `{"name":"x","type":"int"}`),
			[]avro.Incompatibility{{avro.MissingUnionBranch, "reader union lacking writer type: RECORD", "/"}},
		},
		"all problems of a record": {
			record("R", `{"name":"a","type":"int"}`, `{"name":"b","type":`+enumAB+`}`, `{"name":"c","type":`+fixed4+`}`,
				`{"name":"d","type":["null"]}`, `{"name":"e","type":"int"}`),
			record("S", `{"name":"a","type":"string"}`,
				`{"name":"b","type":{"type":"enum","name":"E","symbols":["Z"]}}`,
				`{"name":"c","type":{"type":"fixed","name":"F","size":5}}`, `{"name":"d","type":"int"}`),
			[]avro.Incompatibility{
				{avro.NameMismatch, "expected: S", "/name"},
				{avro.TypeMismatch, "reader type: INT not compatible with writer type: STRING", "/fields/0/type"},
				{avro.MissingEnumSymbols, "[Z]", "/fields/1/type/symbols"},
				{avro.FixedSizeMismatch, "expected: 5, found: 4", "/fields/2/type/size"},
				{avro.MissingUnionBranch, "reader union lacking writer type: INT", "/fields/3/type"},
				{avro.ReaderFieldNoDefault, "e", "/fields/4"},
			},
		},
		"one pair in two places keeps the first path": {
			record("R", `{"name":"a","type":`+fixed4+`}`, `{"name":"b","type":"F"}`),
			record("R", `{"name":"a","type":{"type":"fixed","name":"F","size":1}}`, `{"name":"b","type":"F"}`),
			[]avro.Incompatibility{
				{avro.FixedSizeMismatch, "expected: 1, found: 4", "/fields/0/type/size"},
				{avro.FixedSizeMismatch, "expected: 1, found: 4", "/fields/0/type/size"},
			},
		},
		"a list of another type": {
			`{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","L"]}]}`,
			`{"type":"record","name":"L","fields":[{"name":"v","type":"long"},{"name":"next","type":["null","L"]}]}`,
			[]avro.Incompatibility{{
				avro.TypeMismatch, "reader type: INT not compatible with writer type: LONG",
				"/fields/0/type",
			}},
		},
		"two fields for one": {
			record("R", `{"name":"a","type":"int","aliases":["b"]}`),
			record("R", `{"name":"a","type":"int"}`, `{"name":"b","type":"int"}`),
			[]avro.Incompatibility{{"", "Reader record field a type:INT pos:0 matches multiple fields in writer " +
				"record schema " + record("R", `{"name":"a","type":"int"}`, `{"name":"b","type":"int"}`), "/"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := problemsOf(mustParse(t, tc.reader), mustParse(t, tc.writer))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescriptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reader, writer string
		want           string
	}{
		{
			`"int"`, `"string"`,
			"{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the new schema does not " +
				"match with the old schema', additionalInfo:'reader type: INT not compatible with writer type: " +
				"STRING'}",
		},
		{
			record("A"), record("B"),
			"{errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path '/name')', " +
				"additionalInfo:'expected: B'}",
		},
		{
			fixed4, `{"type":"fixed","name":"F","size":8}`,
			"{errorType:'FIXED_SIZE_MISMATCH', description:'The size of FIXED type field at path '/size' in the new " +
				"schema does not match with the old schema', additionalInfo:'expected: 8, found: 4'}",
		},
		{
			enumAB, `{"type":"enum","name":"E","symbols":["C"]}`,
			"{errorType:'MISSING_ENUM_SYMBOLS', description:'The new schema is missing enum symbols '[C]' at path " +
				"'/symbols' in the old schema', additionalInfo:'[C]'}",
		},
		{
			`["null"]`, `"int"`,
			"{errorType:'MISSING_UNION_BRANCH', description:'The new schema is missing a type inside a union field " +
				"at path '/' in the old schema', additionalInfo:'reader union lacking writer type: INT'}",
		},
		{
			record("R", `{"name":"a","type":"int"}`, `{"name":"x","type":"int"}`),
			record("R", `{"name":"a","type":"int"}`),
			"{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'x' at path '/fields/1' in the " +
				"new schema has no default value and is missing in the old schema', additionalInfo:'x'}",
		},
		{
			record("R", `{"name":"a","type":"int","aliases":["a"]}`), record("R", `{"name":"a","type":"int"}`),
			"Unexpected exception during compatibility check: Reader record field a type:INT pos:0 matches multiple " +
				"fields in writer record schema " + record("R", `{"name":"a","type":"int"}`),
		},
	}
	for _, tc := range tests {
		got := problemsOf(mustParse(t, tc.reader), mustParse(t, tc.writer))
		if len(got) != 1 || got[0].Describe("new", "old") != tc.want {
			t.Errorf("reader %s, writer %s\n got  %v\n want %s", tc.reader, tc.writer, got, tc.want)
		}
	}
	forward := problemsOf(mustParse(t, `"int"`), mustParse(t, `"string"`))[0].Describe("old", "new")
	if want := "of a field in the old schema does not match with the new schema"; !strings.Contains(forward, want) {
		t.Errorf("forward: got %s, want %q in it", forward, want)
	}
}

// TestLargeUnions checks that the index of a large union gives the same results as trying
// every branch.
func TestLargeUnions(t *testing.T) {
	t.Parallel()
	var branches []string
	for i := range 100 {
		branches = append(branches,
			fmt.Sprintf(`{"type":"record","name":"n.R%d","fields":[{"name":"f","type":"long"}]}`, i))
	}
	reader := mustParse(t,
		`["null","double",{"type":"fixed","name":"m.R1","size":3},{"type":"record","name":"n.New","aliases":["n.Old",`+
			`"R5"],"fields":[]},`+strings.Join(branches, ",")+`]`)
	tests := map[string]struct {
		writer string
		ok     bool
	}{
		"itself":               {reader.Canonical(), true},
		"null":                 {`"null"`, true},
		"a promoted number":    {`"int"`, true},
		"no such primitive":    {`"string"`, false},
		"by unqualified name":  {`{"type":"record","name":"x.R7","fields":[{"name":"f","type":"int"}]}`, true},
		"the type decides":     {`{"type":"fixed","name":"R1","size":3}`, true},
		"another size":         {`{"type":"fixed","name":"R1","size":4}`, false},
		"by alias":             {`{"type":"record","name":"n.Old","fields":[]}`, true},
		"by alias, other kind": {`{"type":"fixed","name":"n.Old","size":1}`, false},
		"no such name":         {`{"type":"record","name":"n.R100","fields":[{"name":"f","type":"int"}]}`, false},
		"other fields":         {`{"type":"record","name":"n.R7","fields":[]}`, false},
		"a union of these": {
			`["null","int",{"type":"record","name":"R9","fields":[{"name":"f","type":"int"}]}]`,
			true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := problemsOf(reader, mustParse(t, tc.writer)); (len(got) == 0) != tc.ok {
				t.Errorf("got problems %v, want none: %t", got, tc.ok)
			}
		})
	}
}
