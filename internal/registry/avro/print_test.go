package avro_test

import (
	"testing"
)

func TestCanonicalText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"a bare type": {` { "type" : "int" } `, `"int"`},
		"meaningless keys of a primitive": {
			`{"type":"int","name":"x","doc":"d","size":1,"items":"int","aliases":5}`, `"int"`,
		},
		"order of keys": {
			`{"zeta":1,"aliases":["Old"],"fields":[{"alpha":2,"aliases":["g"],"order":"ignore","default":1,"doc":"d",` +
				`"type":"int","name":"f"}],"doc":"r","namespace":"a.b","name":"R","type":"record"}`,
			`{"type":"record","name":"R","namespace":"a.b","doc":"r","fields":[{"name":"f","type":"int","doc":"d",` +
				`"default":1,"order":"ignore","aliases":["g"],"alpha":2}],"zeta":1,"aliases":["Old"]}`,
		},
		"enum": {
			`{"p":1,"aliases":["D"],"default":"A","symbols":["A","B"],"doc":"","name":"n.E","type":"enum"}`,
			`{"type":"enum","name":"E","namespace":"n","doc":"","symbols":["A","B"],"default":"A","p":1,` +
				`"aliases":["D"]}`,
		},
		"fixed": {
			`{"aliases":["m.D"],"scale":2,"precision":4,"logicalType":"decimal","size":4,"name":"F","type":"fixed"}`,
			`{"type":"fixed","name":"F","size":4,"scale":2,"precision":4,"logicalType":"decimal","aliases":["m.D"]}`,
		},
		"array and map": {
			`{"x":1,"items":{"default":{},"values":"int","type":"map"},"type":"array"}`,
			`{"type":"array","items":{"type":"map","values":"int","default":{}},"x":1}`,
		},
		"error":        {`{"name":"E","type":"error","fields":[]}`, `{"type":"error","name":"E","fields":[]}`},
		"ascending":    {field(`"order":"ascending","type":"int"`), field(`"type":"int"`)},
		"null default": {field(`"default":null,"type":["null","int"]`), field(`"type":["null","int"],"default":null`)},
		"number forms": {field(`"type":"double","default":1`), field(`"type":"double","default":1`)},
		"double forms": {
			field(`"type":"double","default":1e3,"a":[1.0,1e-4,12345678.5,-0.0,1E400]`),
			field(`"type":"double","default":1000.0,"a":[1.0,1.0E-4,1.23456785E7,-0.0,"Infinity"]`),
		},
		"big integers": {
			field(`"type":"int","a":123456789012345678901234567890,"b":-0`),
			field(`"type":"int","a":123456789012345678901234567890,"b":0`),
		},
		"text as double": {field(`"type":"float","default":" 1.5f "`), field(`"type":"float","default":1.5`)},
		"escapes": {
			field(`"type":"int","doc":"<>&'\/\\\"\b\f\n\r\t\u0000\u001f\u007f\u00e9\ud83d\ude00\u2028"`),
			field(`"type":"int","doc":"<>&'/\\\"\b\f\n\r\t\u0000\u001F` + "\u007fé😀\u2028" + `"`),
		},
		"the last of two keys": {`{"a":1,"type":"int","b":2,"a":3}`, `{"type":"int","a":3,"b":2}`},
		"relative names": {
			`{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"record","name":"S","namespace":"m",` +
				`"fields":[{"name":"r","type":["null","n.R"]},{"name":"s","type":["null","m.S"]}]}},` +
				`{"name":"b","type":"m.S"},{"name":"c","type":["null","n.R"]}]}`,
			`{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"record","name":"S",` +
				`"namespace":"m","fields":[{"name":"r","type":["null","n.R"]},{"name":"s","type":["null","S"]}]}},` +
				`{"name":"b","type":"m.S"},{"name":"c","type":["null","R"]}]}`,
		},
		"no namespace inside one": {
			`{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"",` +
				`"size":1}},{"name":"b","type":"F"}]}`,
			`{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"fixed","name":"F",` +
				`"namespace":"","size":1}},{"name":"b","type":"F"}]}`,
		},
		"a name like a kind stays full": {
			`{"type":"record","name":"n.map","fields":[{"name":"a","type":["null","map"]}]}`,
			`{"type":"record","name":"map","namespace":"n","fields":[{"name":"a","type":["null","n.map"]}]}`,
		},
		"defined at the first use": {
			`[{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]},{"type":"array","items":{"type":"enum",` +
				`"name":"B","symbols":[]}}]`,
			`[{"type":"record","name":"A","fields":[{"name":"b","type":{"type":"enum","name":"B","symbols":[]}}]},` +
				`{"type":"array","items":"B"}]`,
		},
		"aliases": {
			`{"type":"record","name":"n.R","aliases":["A","n.A","m.B",".C","n.enum"],"fields":[]}`,
			`{"type":"record","name":"R","namespace":"n","fields":[],"aliases":["A","m.B","C","n.enum"]}`,
		},
		"empty aliases": {
			`{"type":"record","name":"R","aliases":[],"fields":[{"name":"f","type":"int","aliases":[]}]}`,
			field(`"type":"int"`),
		},
		"text that is no doc": {
			`{"type":"record","name":"R","doc":null,"fields":[{"name":"f","type":"int","doc":1}]}`,
			field(`"type":"int"`),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := mustParse(t, tc.text).Canonical(); got != tc.want {
				t.Errorf("canonical text\n got  %s\n want %s", got, tc.want)
			}
		})
	}
}

func TestNormalizedText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"properties by key": {
			`{"type":"record","name":"R","z":1,"a":{"y":1,"x":[{"d":1,"c":2}]},"fields":[{"name":"f",` +
				`"type":{"type":"int","q":1,"p":2},"k":1,"j":2}]}`,
			`{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"int","p":2,"q":1},"j":2,"k":1}],` +
				`"a":{"x":[{"c":2,"d":1}],"y":1},"z":1}`,
		},
		"a logical type first": {
			`{"type":"bytes","scale":2,"a":1,"precision":4,"logicalType":"decimal"}`,
			`{"type":"bytes","logicalType":"decimal","precision":4,"scale":2,"a":1}`,
		},
		"a scale of 0": {
			`{"type":"bytes","scale":0,"z":1,"precision":4,"logicalType":"decimal","a":1}`,
			`{"type":"bytes","logicalType":"decimal","precision":4,"a":1,"scale":0,"z":1}`,
		},
		"a logical type that does not fit": {
			`{"type":"string","precision":4,"logicalType":"decimal","a":1}`,
			`{"type":"string","a":1,"logicalType":"decimal","precision":4}`,
		},
		"aliases by full name": {
			`{"type":"record","name":"n.R","aliases":["z.A","B","a.C"],"fields":[{"name":"f","type":"int",` +
				`"aliases":["y","x"]}]}`,
			`{"type":"record","name":"R","namespace":"n","fields":[{"name":"f","type":"int","aliases":["x","y"]}],` +
				`"aliases":["a.C","B","z.A"]}`,
		},
		"an error is a record": {`{"type":"error","name":"R","fields":[]}`, `{"type":"record","name":"R","fields":[]}`},
		"empty docs of types": {
			`{"type":"record","name":"R","doc":"","fields":[{"name":"f","type":"int","doc":""}]}`,
			field(`"type":"int","doc":""`),
		},
		"integer for a double": {field(`"type":"double","default":0`), field(`"type":"double","default":0.0`)},
		"long for a float":     {field(`"type":"float","default":5000000000`), field(`"type":"float","default":5.0E9`)},
		"double for a float": {
			field(`"type":"float","default":0.10000000000000001`),
			field(`"type":"float","default":0.1`),
		},
		"too large for a float": {
			field(`"type":"float","default":1e300`),
			field(`"type":"float","default":"Infinity"`),
		},
		"big integer in a double": {
			field(`"type":"double","default":9223372036854775808`),
			field(`"type":"double","default":9.223372036854776E18`),
		},
		"integer in a union": {
			field(`"type":["null","int","double"],"default":1`),
			field(`"type":["null","int","double"],"default":1`),
		},
		"double in a union": {
			field(`"type":["null","double","int"],"default":1`),
			field(`"type":["null","double","int"],"default":1.0`),
		},
		"bytes": {field(`"type":"bytes","default":"aÿ€😀"`), field(`"type":"bytes","default":"aÿ??"`)},
		"default of a later branch": {
			field(`"type":["null","string"],"default":"x"`), field(`"type":["null","string"],"default":"x"`),
		},
		"nested defaults": {
			field(`"type":{"type":"record","name":"S","fields":[{"name":"y","type":"float"},` +
				`{"name":"x","type":{"type":"map","values":"double"}}]},"default":{"y":1,"x":{"b":1,"a":2}}`),
			field(`"type":{"type":"record","name":"S","fields":[{"name":"y","type":"float"},` +
				`{"name":"x","type":{"type":"map","values":"double"}}]},"default":{"x":{"a":2.0,"b":1.0},"y":1.0}`),
		},
		"no namespace inside one stays": {
			`{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"",` +
				`"size":1}}]}`,
			`{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"fixed","name":"F",` +
				`"namespace":"","size":1}}]}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := mustParse(t, tc.text).Normalized(); got != tc.want {
				t.Errorf("normalized text\n got  %s\n want %s", got, tc.want)
			}
		})
	}
}

// TestEqualSchemasHaveOneNormalizedText checks that texts with the same meaning have the same normalized
// text.
func TestEqualSchemasHaveOneNormalizedText(t *testing.T) {
	t.Parallel()
	tests := map[string][2]string{
		"order of properties": {`{"type":"int","a":1,"b":2}`, `{"type":"int","b":2,"a":1}`},
		"order of aliases": {
			`{"type":"fixed","name":"F","size":1,"aliases":["A","B"]}`,
			`{"type":"fixed","name":"F","size":1,"aliases":["B","A"]}`,
		},
		"form of a default": {field(`"type":"double","default":0`), field(`"type":"double","default":0.0`)},
	}
	for name, pair := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := mustParse(t, pair[0]), mustParse(t, pair[1])
			if a.Canonical() == b.Canonical() {
				t.Errorf("canonical texts are already equal: %s", a.Canonical())
			}
			if a.Normalized() != b.Normalized() {
				t.Errorf("normalized texts differ:\n%s\n%s", a.Normalized(), b.Normalized())
			}
		})
	}
}

func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := mustParse(t, field(`"type":["null","int"],"default":null`))
	done := make(chan string)
	for range 8 {
		go func() {
			_ = s.DecodeDatum([]byte{0})
			problemsOf(s, s)
			done <- s.Normalized() + s.Resolved()
		}()
	}
	first := <-done
	for range 7 {
		if other := <-done; other != first {
			t.Errorf("texts differ: %s and %s", first, other)
		}
	}
}
