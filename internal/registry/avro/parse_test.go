package avro_test

import (
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/registry/avro"
)

// field wraps the rest of a field into a record.
func field(rest string) string {
	return `{"type":"record","name":"R","fields":[{"name":"f",` + rest + `}]}`
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"a bare type":                      `"string"`,
		"a type in an object":              `{"type":"string"}`,
		"an unknown logical type":          `{"type":"string","logicalType":"colour"}`,
		"a logical type that does not fit": `{"type":"string","logicalType":"decimal","precision":4,"scale":9}`,
		"comments":                         "/* a */ {\"type\": // b\n \"int\"}",
		"an empty union":                   `[]`,
		"an empty enum":                    `{"type":"enum","name":"E","symbols":[]}`,
		"a fixed of no bytes":              `{"type":"fixed","name":"F","size":0}`,
		"use before definition": `[{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]},` +
			`{"type":"enum","name":"B","symbols":["X"]}]`,
		"a record in itself":  `{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}`,
		"a name in an object": `{"type":"record","name":"L","fields":[{"name":"next","type":["null",{"type":"L"}]}]}`,
		"the null namespace as second choice": `{"type":"record","name":"A","fields":[{"name":"x",` +
			`"type":{"type":"record","name":"n.B","fields":[{"name":"a","type":["null","A"]}]}}]}`,
		"one name in two namespaces": `[{"type":"fixed","name":"F","size":1},` +
			`{"type":"fixed","name":"n.F","size":1}]`,
		"a type named like a kind":               `{"type":"record","name":"array","fields":[]}`,
		"a type named like a primitive, far off": `{"type":"record","name":"int","namespace":"n","fields":[]}`,
		"an alias in an odd namespace":           `{"type":"record","name":"R","aliases":["a-b.c"],"fields":[]}`,
		"an odd field alias": `{"type":"record","name":"R","fields":[{"name":"f","type":"int",` +
			`"aliases":["x-y"]}]}`,
		"default of a later branch":   field(`"type":["null","string"],"default":"x"`),
		"default of the first branch": field(`"type":["null","string"],"default":null`),
		"default that is no symbol":   field(`"type":{"type":"enum","name":"E","symbols":["A"]},"default":"B"`),
		"default of another size":     field(`"type":{"type":"fixed","name":"F","size":2},"default":"abc"`),
		"integer default of a double": field(`"type":"double","default":1`),
		"default of a double as text": field(`"type":"double","default":"NaN"`),
		"record default with inner defaults": field(
			`"type":{"type":"record","name":"S","fields":[{"name":"x","type":"int","default":1}]},"default":{}`),
		"default of an enum that comes later": `[{"type":"record","name":"A","fields":[{"name":"b","type":"B",` +
			`"default":"X"}]},{"type":"enum","name":"B","symbols":["X"]}]`,
		"descending order in capitals": field(`"type":"int","order":"DESCENDING"`),
		"enum default that is no text": `{"type":"enum","name":"E","symbols":["A"],"default":5}`,
		"the deepest nesting": strings.Repeat(`{"type":"array","items":`, 1000) + `"int"` +
			strings.Repeat("}", 1000),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := avro.Parse(text, nil)
			if err != nil {
				t.Fatalf("Parse(%s): %v", text, err)
			}
			if _, err := avro.Parse(s.Canonical(), nil); err != nil {
				t.Errorf("canonical text %s: %v", s.Canonical(), err)
			}
		})
	}
}

func TestParseRejectsInvalidSchemas(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"nothing":              {``, "Cannot parse <null> schema"},
		"white space":          {" \n", "Cannot parse <null> schema"},
		"a bare word":          {`string`, "Unrecognized token 'string'"},
		"null":                 {`null`, "Schema not yet supported: null"},
		"more than one value":  {`"int" "int"`, `dangling content after end of schema: "int"`},
		"a comment at the end": {`"int" // x`, `dangling content after end of schema: // x`},
		"a trailing comma": {
			`{"type":"int",}`,
			"was expecting double-quote to start field name at line 1, column 15",
		},
		"single quotes":       {`{'type':'int'}`, "was expecting double-quote"},
		"an open string":      {`"int`, "closing quote"},
		"a control character": {"\"i\tnt\"", "Illegal unquoted character"},
		"a bad escape":        {`"\x"`, "Unrecognized character escape"},
		"leading zeros":       {`{"type":"int","x":01}`, "Leading zeroes not allowed"},
		"a bare fraction":     {`{"type":"int","x":.5}`, "Unexpected character"},
		"a long number": {
			`{"type":"int","x":` + strings.Repeat("1", 1001) + `}`,
			"Number value length (1001) exceeds the maximum allowed (1000)",
		},
		"no type":                {`{}`, "No type: {}"},
		"a type that is no text": {`{"type":{"type":"int"}}`, "No type"},
		"an undefined type":      {`"Foo"`, "Undefined schema: Foo"},
		"an undefined field type": {
			`{"type":"record","name":"n.R","fields":[{"name":"f","type":"Foo"}]}`,
			"Undefined schema: n.Foo",
		},
		"an inline enum": {field(`"type":"enum","symbols":["A"]`), "Undefined schema: enum"},
		"later, other namespace": {
			`{"type":"record","name":"R","namespace":"n","fields":[{"name":"x","type":"B"},` +
				`{"name":"y","type":{"type":"enum","name":"B","namespace":"","symbols":["A"]}}]}`,
			"Undefined schema: n.B",
		},
		"no name":               {`{"type":"record","fields":[]}`, "No name in schema"},
		"no fields":             {`{"type":"record","name":"R"}`, "Record has no fields"},
		"no symbols":            {`{"type":"enum","name":"E"}`, "Enum has no symbols"},
		"no size":               {`{"type":"fixed","name":"F"}`, "Invalid or no size"},
		"a size that is no int": {`{"type":"fixed","name":"F","size":1.0}`, "Invalid or no size"},
		"a negative size":       {`{"type":"fixed","name":"F","size":-1}`, "Length is negative: -1"},
		"an immense size": {
			`{"type":"fixed","name":"F","size":2147483647}`,
			"Cannot read arrays longer than 2147483639 bytes",
		},
		"no items":              {`{"type":"array"}`, "Array has no items type"},
		"no values":             {`{"type":"map"}`, "Map has no values type"},
		"no field name":         {`{"type":"record","name":"R","fields":[{"type":"int"}]}`, "No field name"},
		"no field type":         {`{"type":"record","name":"R","fields":[{"name":"f"}]}`, "No field type"},
		"an empty name":         {`{"type":"record","name":"","fields":[]}`, "Empty name"},
		"a digit first":         {`{"type":"record","name":"1R","fields":[]}`, "Illegal initial character: 1R"},
		"a dash in a name":      {`{"type":"record","name":"a-b","fields":[]}`, "Illegal character in: a-b"},
		"a letter beyond ASCII": {`{"type":"record","name":"Ré","fields":[]}`, "Illegal character in: Ré"},
		"a dash in a namespace": {
			`{"type":"record","name":"R","namespace":"x.a-b","fields":[]}`,
			`Namespace part "a-b" is invalid: Illegal character in: a-b`,
		},
		"an empty namespace part": {
			`{"type":"record","name":"a..R","fields":[]}`,
			`Namespace part "" is invalid: Empty name`,
		},
		"a bad field name": {
			`{"type":"record","name":"R","fields":[{"name":"a.b","type":"int"}]}`,
			"Illegal character in: a.b",
		},
		"a bad symbol":             {`{"type":"enum","name":"E","symbols":["A-B"]}`, "Illegal character in: A-B"},
		"a symbol that is no text": {`{"type":"enum","name":"E","symbols":[1]}`, "Null name"},
		"a bad alias": {
			`{"type":"record","name":"R","aliases":["a-b"],"fields":[]}`,
			"Illegal character in: a-b",
		},
		"aliases not in an array":  {`{"type":"record","name":"R","aliases":"a","fields":[]}`, "aliases not an array"},
		"an alias that is no text": {field(`"type":"int","aliases":[1]`), "alias not a string: 1"},
		"a name of a primitive": {
			`{"type":"fixed","name":"int","size":1}`,
			"Schemas may not be named after primitives: int",
		},
		"a field twice": {
			`{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"long"}]}`,
			"Duplicate field a in record R: a type:LONG pos:1 and a type:INT pos:0.",
		},
		"a symbol twice": {`{"type":"enum","name":"E","symbols":["A","A"]}`, "Duplicate enum symbol: A"},
		"a default not a symbol": {
			`{"type":"enum","name":"E","symbols":["A"],"default":"B"}`,
			"The Enum Default: B is not in the enum symbol set: [A]",
		},
		"a type twice": {
			`[{"type":"fixed","name":"F","size":1},{"type":"array","items":{"type":"fixed","name":"F","size":2}}]`,
			"Can't redefine: F",
		},
		"the same type twice": {
			`[{"type":"fixed","name":"F","size":1},{"type":"array","items":{"type":"fixed","name":"F","size":1}}]`,
			"Can't redefine: F",
		},
		"a union in a union": {`["null",["int"]]`, "Nested union"},
		"a branch twice":     {`["int",{"type":"int","x":1}]`, "Duplicate in union:int"},
		"two maps": {
			`[{"type":"map","values":"int"},{"type":"map","values":"long"}]`,
			"Duplicate in union:map",
		},
		"a named branch twice": {`[{"type":"fixed","name":"F","size":1},"F"]`, "Duplicate in union:F"},
		"a later branch twice": {`["F",{"type":"fixed","name":"F","size":1}]`, "Duplicate in union:F"},
		"an unknown order":     {field(`"type":"int","order":"up"`), "Invalid order"},
		"int: a fraction":      {field(`"type":"int","default":1.0`), `Invalid default for field f: 1.0 not a "int"`},
		"int: too large":       {field(`"type":"int","default":2147483648`), "Invalid default"},
		"int: text":            {field(`"type":"int","default":"1"`), "Invalid default"},
		"int: null":            {field(`"type":"int","default":null`), "Invalid default"},
		"long: too large":      {field(`"type":"long","default":9223372036854775808`), "Invalid default"},
		"double: other text": {
			field(`"type":"double","default":"x"`),
			`Invalid default for field f: "x" not a "double"`,
		},
		"double: text in a union": {field(`"type":["double","null"],"default":"1.5"`), "Invalid default"},
		"string: a number":        {field(`"type":"string","default":1`), "Invalid default"},
		"boolean: text":           {field(`"type":"boolean","default":"true"`), "Invalid default"},
		"union: no branch":        {field(`"type":["null","string"],"default":1`), "Invalid default"},
		"array: one wrong item": {
			field(`"type":{"type":"array","items":"int"},"default":[1,"x"]`),
			"Invalid default",
		},
		"map: one wrong value": {
			field(`"type":{"type":"map","values":"int"},"default":{"a":"b"}`),
			"Invalid default",
		},
		"record: a field missing": {
			field(
				`"type":{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]},"default":{}`),
			"Invalid default",
		},
		"record: without an end": {field(`"type":"R","default":{}`), "Invalid default"},
		"nested too deeply": {strings.Repeat(`{"type":"array","items":`, 1001) + `"int"` +
			strings.Repeat("}", 1001), "Document nesting depth (1001) exceeds the maximum allowed (1000)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := avro.Parse(tc.text, nil)
			if err == nil {
				t.Fatalf("Parse(%s) succeeded", tc.text)
			}
			if errs.KindOf(err) != errs.Invalid {
				t.Errorf("kind of %v = %v", err, errs.KindOf(err))
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse(%s)\n error %q\n want  %q", tc.text, err, tc.want)
			}
		})
	}
}
