package avro_test

import (
	"fmt"
	"strings"
	"testing"

	"freshet/internal/base/errs"
)

func TestValidateJSON(t *testing.T) {
	t.Parallel()
	user := record("User", `{"name":"name","type":"string"}`, `{"name":"age","type":["null","int"]}`,
		`{"name":"tags","type":{"type":"array","items":"string"},"default":[]}`)
	tests := map[string]struct {
		schema string
		data   string
		err    string
	}{
		"a record":                     {user, `{"name":"Ada","age":36,"tags":["a"]}`, ""},
		"null for a nullable field":    {user, `{"name":"Ada","age":null}`, ""},
		"nullable and default missing": {user, `{"name":"Ada"}`, ""},
		"a further field":              {user, `{"name":"Ada","born":1815}`, ""},
		"a tagged value":               {user, `{"name":"Ada","age":{"int":36}}`, ""},
		"a required field missing":     {user, `{"age":36}`, `field "name" is missing`},
		"a wrong field":                {user, `{"name":5}`, `field "name": 5 is not of type "string"`},
		"a wrong branch": {
			user,
			`{"name":"Ada","age":"old"}`,
			`field "age": "old" is not of type ["null","int"]`,
		},
		"a wrong item": {
			user,
			`{"name":"Ada","tags":["a",1]}`,
			`field "tags": item 1: 1 is not of type "string"`,
		},
		"no object":           {user, `[1]`, `[1] is not of type`},
		"nothing":             {user, ``, "message is empty"},
		"no JSON":             {user, `{"name"`, "Unexpected end-of-input"},
		"more than one value": {user, `{"name":"Ada"}{}`, "dangling content after end of message: {}"},
		"a comment":           {user, `/* x */ {"name":"Ada"}`, "Unexpected character"},
		"not UTF-8":           {user, "{\"name\":\"\xff\"}", "not UTF-8"},
		"int":                 {`"int"`, `-2147483648`, ""},
		"int: too large":      {`"int"`, `2147483648`, "is not of type"},
		"int: a fraction":     {`"int"`, `1.5`, "is not of type"},
		"long":                {`"long"`, `9223372036854775807`, ""},
		"long: too large":     {`"long"`, `9223372036854775808`, "is not of type"},
		"long: a time as text": {
			`{"type":"long","logicalType":"timestamp-millis"}`,
			`"2020-01-01T00:00:00Z"`,
			"",
		},
		"long: text":           {`"long"`, `"1"`, "is not of type"},
		"double: an integer":   {`"double"`, `1`, ""},
		"double: not a number": {`"double"`, `"NaN"`, ""},
		"double: text":         {`"double"`, `"1.5"`, "is not of type"},
		"boolean":              {`"boolean"`, `false`, ""},
		"boolean: a number":    {`"boolean"`, `0`, "is not of type"},
		"null":                 {`"null"`, `null`, ""},
		"bytes":                {`"bytes"`, `"AAEC"`, ""},
		"bytes: a number":      {`"bytes"`, `1`, "is not of type"},
		"bytes: a decimal": {
			`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`,
			`12.34`,
			"",
		},
		"fixed: a character for a byte": {fixed4, `"\u0000abÿ"`, ""},
		"fixed: base64":                 {fixed4, `"AAECAw=="`, ""},
		"fixed: another size":           {fixed4, `"abc"`, "is not of type"},
		"enum":                          {enumAB, `"B"`, ""},
		"enum: no symbol":               {enumAB, `"C"`, "is not of type"},
		"enum: a number":                {enumAB, `0`, "is not of type"},
		"map":                           {`{"type":"map","values":"int"}`, `{"a":1,"b":2}`, ""},
		"map: a wrong value":            {`{"type":"map","values":"int"}`, `{"a":1,"b":"2"}`, `key "b"`},
		"map: an array":                 {`{"type":"map","values":"int"}`, `[]`, "is not of type"},
		"array: an object":              {`{"type":"array","items":"int"}`, `{}`, "is not of type"},
		"union: the second record": {`[` + record("A", `{"name":"a","type":"int"}`) + `,` +
			record("B", `{"name":"b","type":"int"}`) + `]`, `{"b":1}`, ""},
		"union: neither record": {`[` + record("A", `{"name":"a","type":"int"}`) + `,` +
			record("B", `{"name":"b","type":"int"}`) + `]`, `{"c":1}`, "is not of type"},
		"union: a tagged record": {
			`["null",` + record("n.A", `{"name":"a","type":"int"}`) + `]`,
			`{"n.A":{"a":1}}`, "",
		},
		"union: a tag without namespace": {
			`["null",` + record("n.A", `{"name":"a","type":"int"}`) + `]`,
			`{"A":{"a":1}}`, "",
		},
		"union: wrong under a tag": {
			`["null",` + record("n.A", `{"name":"a","type":"int"}`) + `]`,
			`{"A":{"a":"1"}}`, "is not of type",
		},
		"union: a map with a key like it": {`["null",{"type":"map","values":"int"}]`, `{"map":1}`, ""},
		"union: a tagged map":             {`["null",{"type":"map","values":"int"}]`, `{"map":{"a":1}}`, ""},
		"union: why a record does not": {
			`["null",` + record("A", `{"name":"a","type":"int"}`) + `]`, `{"a":"x"}`,
			`field "a": "x" is not of type "int"`,
		},
		"a list": {
			`{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","L"]}]}`,
			`{"v":1,"next":{"v":2,"next":{"L":{"v":3}}}}`, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := mustParse(t, tc.schema).ValidateJSON([]byte(tc.data))
			if tc.err == "" {
				if err != nil {
					t.Errorf("got error %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.err) || errs.KindOf(err) != errs.Invalid {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

// TestValidateJSONIsBounded validates a value in which each level matches one of two
// records, and only the innermost value shows that neither matches.
func TestValidateJSONIsBounded(t *testing.T) {
	t.Parallel()
	var schema strings.Builder
	schema.WriteString(`[` + record("A", `{"name":"n","type":["null","A","B"]}`, `{"name":"v","type":"int"}`) + `,` +
		record("B", `{"name":"n","type":["null","A","B"]}`, `{"name":"v","type":"long"}`) + `]`)
	s := mustParse(t, schema.String())
	data := strings.Repeat(`{"v":1,"n":`, 900) + `"x"` + strings.Repeat(`}`, 900)
	if err := s.ValidateJSON([]byte(data)); err == nil {
		t.Error("accepted")
	}
	data = strings.Repeat(`{"v":1,"n":`, 900) + `null` + strings.Repeat(`}`, 900)
	if err := s.ValidateJSON([]byte(data)); err != nil {
		t.Error(err)
	}
	if err := s.ValidateJSON([]byte(strings.Repeat(`[`, 1<<20))); err == nil {
		t.Error("a million brackets are accepted")
	}
}

func BenchmarkValidateJSON(b *testing.B) {
	s := mustParse(b, record("R", `{"name":"id","type":"long"}`, `{"name":"name","type":["null","string"]}`,
		`{"name":"xs","type":{"type":"array","items":"double"}}`))
	data := fmt.Appendf(nil, `{"id":12345678901,"name":"some name","xs":[%s1]}`, strings.Repeat("1.5,", 100))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := s.ValidateJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}
