package avro_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"freshet/internal/base/errs"
)

func TestDecodeDatum(t *testing.T) {
	t.Parallel()
	const (
		list  = `{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","L"]}]}`
		empty = `{"type":"record","name":"Empty","fields":[{"name":"a","type":"null"},` +
			`{"name":"b","type":{"type":"fixed","name":"Z","size":0}}]}`
	)
	tests := map[string]struct {
		schema string
		data   string
		err    string // "" if the datum is valid
	}{
		"null":                        {`"null"`, "", ""},
		"something for null":          {`"null"`, "\x00", "1 bytes follow"},
		"true":                        {`"boolean"`, "\x01", ""},
		"neither true nor false":      {`"boolean"`, "\x02", "neither 0 nor 1"},
		"int":                         {`"int"`, "\xff\xff\xff\xff\x0f", ""},
		"int of 33 bits":              {`"int"`, "\xff\xff\xff\xff\x1f", "more than 32 bits"},
		"long":                        {`"long"`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ""},
		"long of 65 bits":             {`"long"`, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03", "more than 64 bits"},
		"half a number":               {`"long"`, "\x80", "ends inside a number"},
		"float":                       {`"float"`, "abcd", ""},
		"half a double":               {`"double"`, "abcd", "ends inside a value of 8 bytes"},
		"bytes":                       {`"bytes"`, "\x06\xff\xfe\xfd", ""},
		"bytes longer than the datum": {`"bytes"`, "\x08abc", "length 4 exceeds"},
		"bytes of negative length":    {`"bytes"`, "\x01", "length -1 exceeds"},
		"bytes of immense length":     {`"bytes"`, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "exceeds the remaining"},
		"string":                      {`"string"`, "\x04é", ""},
		"string that is not UTF-8":    {`"string"`, "\x02\xff", "not UTF-8"},
		"fixed":                       {fixed4, "abcd", ""},
		"short fixed":                 {fixed4, "abc", "ends inside"},
		"long fixed":                  {fixed4, "abcde", "1 bytes follow"},
		"enum":                        {enumAB, "\x02", ""},
		"enum beyond its symbols":     {enumAB, "\x04", "2 is not among the 2 symbols"},
		"enum before its symbols":     {enumAB, "\x01", "-1 is not among"},
		"union":                       {`["null","string"]`, "\x02\x02a", ""},
		"union beyond its branches":   {`["null","string"]`, "\x04", "2 is not among the 2 branches"},
		"empty union":                 {`[]`, "\x00", "0 is not among the 0 branches"},
		"array":                       {`{"type":"array","items":"int"}`, "\x04\x01\x02\x02\x03\x00", ""},
		"empty array":                 {`{"type":"array","items":"int"}`, "\x00", ""},
		"array with sizes":            {`{"type":"array","items":"int"}`, "\x03\x04\x01\x02\x00", ""},
		"array with a wrong size":     {`{"type":"array","items":"int"}`, "\x03\x02\x01\x02\x00", "another size"},
		"array without its end":       {`{"type":"array","items":"int"}`, "\x02\x01", "ends inside a number"},
		"array of immense length": {
			`{"type":"array","items":"int"}`,
			"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "longer than the datum",
		},
		"array of the smallest count": {
			`{"type":"array","items":"int"}`,
			"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00", "too many items",
		},
		"many nulls": {`{"type":"array","items":"null"}`, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", ""},
		"many empty records": {
			`{"type":"array","items":` + empty + `}`,
			"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "",
		},
		"map": {`{"type":"map","values":"null"}`, "\x02\x02k\x00", ""},
		"map of immense length": {
			`{"type":"map","values":"null"}`,
			"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "longer than the datum",
		},
		"record":             {point2, "\x02\x04", ""},
		"record of no bytes": {empty, "", ""},
		"half a record":      {point2, "\x02", "ends inside a number"},
		"list":               {list, "\x02\x02\x04\x00", ""},
		"a record without an end": {
			`{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}`, "",
			"nested more than",
		},
		"two records without an end": {
			`{"type":"record","name":"A","fields":[{"name":"b","type":{"type":"record","name":"B",` +
				`"fields":[{"name":"a","type":"A"}]}}]}`,
			"",
			"nested more than",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := mustParse(t, tc.schema).DecodeDatum([]byte(tc.data))
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

func TestDecodeDatumIsBounded(t *testing.T) {
	t.Parallel()
	list := mustParse(t, `{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}`)
	if err := list.DecodeDatum(append(bytes.Repeat([]byte{2}, 4000), 0)); err != nil {
		t.Errorf("a list of 4,000: got error %v, want none", err)
	}
	if err := list.DecodeDatum(append(bytes.Repeat([]byte{2}, 1<<20), 0)); err == nil {
		t.Error("a list of a million is accepted")
	}

	// Every byte of the datum costs a hundred records and a thousand nulls.
	var wrap strings.Builder
	for i := range 100 {
		wrap.WriteString(`{"type":"record","name":"W` + strings.Repeat("x", i) + `","fields":[{"name":"f","type":`)
	}
	wrap.WriteString(`{"type":"record","name":"Last","fields":[`)
	for i := range 1000 {
		wrap.WriteString(`{"name":"n` + strings.Repeat("x", i) + `","type":"null"},`)
	}
	wrap.WriteString(`{"name":"b","type":"boolean"}]}`)
	wrap.WriteString(strings.Repeat(`}]}`, 100))
	s := mustParse(t, `{"type":"array","items":`+wrap.String()+`}`)
	small := append(binary.AppendVarint(nil, 1000), make([]byte, 1001)...)
	if err := s.DecodeDatum(small); err != nil {
		t.Errorf("a small datum: got error %v, want none", err)
	}
	large := append(binary.AppendVarint(nil, 1<<17), make([]byte, 1<<17+1)...)
	if err := s.DecodeDatum(large); err == nil || !strings.Contains(err.Error(), "too costly") {
		t.Errorf("a large datum: got %v, want it to be too costly", err)
	}
}
