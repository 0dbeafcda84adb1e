package protobuf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// body returns a proto3 file with one message M that contains the declarations inside.
func body(inside string) string { return "syntax = \"proto3\";\nmessage M {\n" + inside + "\n}" }

// body2 returns a proto2 file with one message M that contains the declarations inside.
func body2(inside string) string { return "syntax = \"proto2\";\nmessage M {\n" + inside + "\n}" }

type comparison struct {
	old, new string
	want     string // differences, joined by " | "; incompatible ones end in !
}

var comparisons = map[string]comparison{
	"package changed": {"package a; message M {}", "package b; message M {}", "PACKAGE_CHANGED #/!"},
	"package removed": {"package a; message M {}", "message M {}", "PACKAGE_CHANGED #/!"},
	"package and more": {
		"package a; message M { optional M m = 1; }",
		"package b; message M { optional M m = 1; }", "PACKAGE_CHANGED #/!",
	},
	"message added":          {"message M {}", "message M {} message N {}", "MESSAGE_ADDED #/N"},
	"nested message added":   {body(""), body("message N {}"), "MESSAGE_ADDED #/M/N"},
	"message removed":        {"message M {} message N {}", "message M {}", "MESSAGE_REMOVED #/N!"},
	"nested message removed": {body("message N { message O {} }"), body("message N {}"), "MESSAGE_REMOVED #/M/N/O!"},
	"message renamed":        {"message M {}", "message N {}", "MESSAGE_REMOVED #/M! | MESSAGE_ADDED #/N"},
	"message moved": {
		"message M {} message N {}", "message N {} message M {}",
		"MESSAGE_MOVED #/M | MESSAGE_MOVED #/N",
	},
	"nested message moved": {
		body("message A {} message B {}"), body("message B {} message A {}"),
		"MESSAGE_MOVED #/M/A | MESSAGE_MOVED #/M/B",
	},
	"enum instead of message": {
		body("message N {}"), body("enum N { A = 0; }"),
		"MESSAGE_REMOVED #/M/N! | ENUM_ADDED #/M/N",
	},
	"enum added":           {body(""), body("") + "enum E { A = 0; }", "ENUM_ADDED #/E"},
	"nested enum added":    {body(""), body("enum E { A = 0; }"), "ENUM_ADDED #/M/E"},
	"enum removed":         {body("") + "enum E { A = 0; }", body(""), "ENUM_REMOVED #/E"},
	"nested enum removed":  {body("enum E { A = 0; }"), body(""), "ENUM_REMOVED #/M/E"},
	"enum value added":     {body("enum E { A = 0; }"), body("enum E { A = 0; B = 1; }"), "ENUM_CONST_ADDED #/M/E/1"},
	"negative value added": {"enum E { A = 0; }", "enum E { A = 0; B = -1; }", "ENUM_CONST_ADDED #/E/-1"},
	"enum value renamed":   {"enum E { A = 0; }", "enum E { B = 0; }", "ENUM_CONST_CHANGED #/E/0"},
	"enum values swapped": {
		"enum E { A = 0; B = 1; }", "enum E { B = 0; A = 1; }",
		"ENUM_CONST_CHANGED #/E/0 | ENUM_CONST_CHANGED #/E/1",
	},
	"enum value removed": {"enum E { A = 0; B = 1; }", "enum E { A = 0; }", "ENUM_CONST_REMOVED #/E/1"},
	"enum value moved": {
		body("enum E { A = 0; B = 1; }"), body("enum E { A = 0; B = 2; }"),
		"ENUM_CONST_REMOVED #/M/E/1 | ENUM_CONST_ADDED #/M/E/2",
	},

	"field added":         {body(""), body("int32 a = 1;"), "FIELD_ADDED #/M/1"},
	"map added":           {body(""), body("map<string, int32> a = 1;"), "FIELD_ADDED #/M/1"},
	"field removed":       {body("int32 a = 1;"), body(""), "FIELD_REMOVED #/M/1"},
	"field made reserved": {body("int32 a = 1;"), body("reserved 1;"), "FIELD_REMOVED #/M/1"},
	"field renumbered":    {body("int32 a = 1;"), body("int32 a = 2;"), "FIELD_REMOVED #/M/1 | FIELD_ADDED #/M/2"},
	"field renamed":       {body("int32 a = 1;"), body("int32 b = 1;"), "FIELD_NAME_CHANGED #/M/1"},
	"fields swapped": {
		body("int32 a = 1; int32 b = 2;"), body("int32 b = 1; int32 a = 2;"),
		"FIELD_NAME_CHANGED #/M/1 | FIELD_NAME_CHANGED #/M/2",
	},
	"fields reordered":       {body("int32 a = 1; int32 b = 2;"), body("int32 b = 2; int32 a = 1;"), ""},
	"required added":         {body2(""), body2("required int32 a = 1;"), "REQUIRED_FIELD_ADDED #/M/1!"},
	"required message added": {body2(""), body2("required M a = 7;"), "REQUIRED_FIELD_ADDED #/M/7!"},
	"required removed":       {body2("required int32 a = 1;"), body2(""), "REQUIRED_FIELD_REMOVED #/M/1!"},
	"required reserved":      {body2("required M a = 7;"), body2("reserved 7;"), "REQUIRED_FIELD_REMOVED #/M/7!"},
	"optional added":         {body2(""), body2("optional int32 a = 1;"), "FIELD_ADDED #/M/1"},
	"extension range":        {body2("optional int32 a = 1;"), body2("optional int32 a = 1; extensions 5 to 10;"), ""},

	"scalar to message": {body("int32 a = 1;"), body("M a = 1;"), "FIELD_KIND_CHANGED #/M/1!"},
	"message to map":    {body("repeated M a = 1;"), body("map<string, M> a = 1;"), "FIELD_KIND_CHANGED #/M/1!"},
	"map to scalar":     {body("map<string, string> a = 1;"), body("string a = 1;"), "FIELD_KIND_CHANGED #/M/1!"},
	"message to enum": {
		body("M a = 1;"), body("E a = 1; enum E { A = 0; }"),
		"FIELD_KIND_CHANGED #/M/1! | ENUM_ADDED #/M/E",
	},
	"message to bytes":   {body("M a = 1;"), body("bytes a = 1;"), "FIELD_KIND_CHANGED #/M/1!"},
	"int32 to string":    {body("int32 a = 1;"), body("string a = 1;"), "FIELD_SCALAR_KIND_CHANGED #/M/1!"},
	"int32 to sint32":    {body("int32 a = 1;"), body("sint32 a = 1;"), "FIELD_SCALAR_KIND_CHANGED #/M/1!"},
	"int32 to fixed32":   {body("int32 a = 1;"), body("fixed32 a = 1;"), "FIELD_SCALAR_KIND_CHANGED #/M/1!"},
	"fixed32 to fixed64": {body("fixed32 a = 1;"), body("fixed64 a = 1;"), "FIELD_SCALAR_KIND_CHANGED #/M/1!"},
	"float to double":    {body("float a = 1;"), body("double a = 1;"), "FIELD_SCALAR_KIND_CHANGED #/M/1!"},
	"enum to string": {
		body("E a = 1; enum E { A = 0; }"), body("string a = 1; enum E { A = 0; }"),
		"FIELD_SCALAR_KIND_CHANGED #/M/1!",
	},
	"varints": {
		body("int32 a = 1; int64 b = 2; bool c = 3;"),
		body("uint64 a = 1; bool b = 2; uint32 c = 3;"),
		"",
	},
	"zigzags":          {body("sint32 a = 1;"), body("sint64 a = 1;"), ""},
	"fixed":            {body("fixed32 a = 1; sfixed64 b = 2;"), body("sfixed32 a = 1; fixed64 b = 2;"), ""},
	"string and bytes": {body("string a = 1;"), body("bytes a = 1;"), ""},
	"int to enum and back": {
		body("int32 a = 1; E b = 2; enum E { A = 0; }"),
		body("E a = 1; int64 b = 2; enum E { A = 0; }"), "",
	},
	"another enum": {
		body("E a = 1; enum E { A = 0; } enum F { B = 0; }"),
		body("F a = 1; enum E { A = 0; } enum F { B = 0; }"), "",
	},
	"map key": {body("map<int32, M> a = 1;"), body("map<string, M> a = 1;"), "FIELD_SCALAR_KIND_CHANGED #/M/1!"},
	"map value": {
		body("map<string, int32> a = 1;"), body("map<string, double> a = 1;"),
		"FIELD_SCALAR_KIND_CHANGED #/M/1!",
	},
	"map value kind": {
		body("map<string, int32> a = 1;"),
		body("map<string, M> a = 1;"),
		"FIELD_KIND_CHANGED #/M/1!",
	},
	"map within groups": {body("map<int32, string> a = 1;"), body("map<uint64, bytes> a = 1;"), ""},
	"map message value": {
		body("map<int32, N> a = 1; message N {} message O {}"),
		body("map<int32, O> a = 1; message N {} message O {}"), "FIELD_NAMED_TYPE_CHANGED #/M/1!",
	},

	"other message": {
		body("N a = 1; message N {} message O {}"), body("O a = 1; message N {} message O {}"),
		"FIELD_NAMED_TYPE_CHANGED #/M/1!",
	},
	"message at top level": {
		body("N a = 1; message N {}") + "message N {}",
		body(".N a = 1; message N {}") + "message N {}", "FIELD_NAMED_TYPE_CHANGED #/M/1!",
	},
	"spelling of a name": {
		"package p.q; message M { optional N a = 1; message N {} }",
		"package p.q; message M { optional .p.q.M.N a = 1; message N {} }", "",
	},
	"spelling in a map": {body("map<string, N> a = 1; message N {}"), body("map<string, M.N> a = 1; message N {}"), ""},
	"nested type changed": {
		body("N a = 1; message N { int32 x = 1; }"), body("N a = 1; message N { string x = 1; }"),
		"FIELD_SCALAR_KIND_CHANGED #/M/N/1!",
	},
	"recursive": {
		body("M a = 1; N n = 2;") + "message N { M m = 1; }",
		body("M a = 1; N n = 2;") + "message N { M m = 1; }", "",
	},
	"recursive, changed": {
		body("M a = 1; int32 b = 2;"), body("M a = 1; float b = 2;"),
		"FIELD_SCALAR_KIND_CHANGED #/M/2!",
	},
	"spelled map and map": {body("repeated AEntry a = 1; message AEntry { option map_entry = true; string key = " +
		"1; int32 value = 2; }"), body("map<string, int32> a = 1;"), ""},
	"spelled map, changed": {body("repeated AEntry a = 1; message AEntry { option map_entry = true; string key = " +
		"1; int32 value = 2; }"), body("map<string, string> a = 1;"), "FIELD_SCALAR_KIND_CHANGED #/M/1!"},
	"well-known type": {
		"syntax = \"proto3\"; import \"google/protobuf/any.proto\"; message M { " +
			"google.protobuf.Any a = 1; }",
		"syntax = \"proto3\"; import \"google/protobuf/any.proto\"; message M { .google.protobuf.Any a = 1; }", "",
	},
	"another well-known": {"import \"google/protobuf/wrappers.proto\"; message M { optional " +
		"google.protobuf.Int32Value a = 1; }", "import \"google/protobuf/wrappers.proto\"; message M { optional " +
		"google.protobuf.Int64Value a = 1; }", "FIELD_NAMED_TYPE_CHANGED #/M/1!"},
	"wrapper to scalar": {
		"syntax = \"proto3\"; import \"google/protobuf/wrappers.proto\"; message M { " +
			"google.protobuf.StringValue a = 1; }", "syntax = \"proto3\"; message M { string a = 1; }",
		"FIELD_KIND_CHANGED #/M/1!",
	},
	"numeric label": {
		body("optional int32 a = 1;"), body("repeated int32 a = 1;"),
		"FIELD_NUMERIC_LABEL_CHANGED #/M/1!",
	},
	"numeric label, proto2": {
		body2("optional double a = 1;"), body2("required double a = 1;"),
		"FIELD_NUMERIC_LABEL_CHANGED #/M/1!",
	},
	"enum label": {
		body2("optional E a = 1; enum E { A = 1; }"),
		body2("repeated E a = 1; enum E { A = 1; }"), "FIELD_NUMERIC_LABEL_CHANGED #/M/1!",
	},
	"string label": {
		body("optional string a = 1;"), body("repeated string a = 1;"),
		"FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1",
	},
	"bytes label, proto2": {
		body2("required bytes a = 1;"), body2("optional bytes a = 1;"),
		"FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1",
	},
	"implicit label": {body("int32 a = 1; string b = 2;"), body("repeated int32 a = 1; optional string b = 2;"), ""},
	"message label":  {body("optional M a = 1;"), body("repeated M a = 1;"), ""},
	"type before label": {
		body("optional int32 a = 1;"), body("repeated string a = 1;"),
		"FIELD_SCALAR_KIND_CHANGED #/M/1!",
	},
	"name and type": {
		body("int32 a = 1;"), body("string b = 1;"),
		"FIELD_NAME_CHANGED #/M/1 | FIELD_SCALAR_KIND_CHANGED #/M/1!",
	},

	"oneof added": {
		body("int32 x = 9;"), body("int32 x = 9; oneof o { int32 a = 1; }"),
		"ONEOF_ADDED #/M/o | ONEOF_FIELD_ADDED #/M/o/1",
	},
	"oneof around a field": {body("int32 a = 1;"), body("oneof o { int32 a = 1; }"), "ONEOF_ADDED #/M/o"},
	"oneof around one and new": {
		body("int32 a = 1;"), body("oneof o { int32 a = 1; int32 b = 2; }"),
		"ONEOF_ADDED #/M/o | ONEOF_FIELD_ADDED #/M/o/2",
	},
	"oneof removed": {body("oneof o { int32 a = 1; int32 b = 2; }"), body(""), "ONEOF_REMOVED #/M/o"},
	"oneof dissolved": {
		body("oneof o { int32 a = 1; int32 b = 2; }"), body("int32 a = 1; int32 b = 2;"),
		"ONEOF_REMOVED #/M/o | ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/1 | ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2",
	},
	"oneof renamed": {
		body("oneof o { int32 a = 1; int32 b = 2; }"),
		body("oneof p { int32 a = 1; int32 b = 2; }"), "ONEOF_REMOVED #/M/o | ONEOF_ADDED #/M/p",
	},
	"oneof field added": {
		body("oneof o { int32 a = 1; }"), body("oneof o { int32 a = 1; M b = 2; }"),
		"ONEOF_FIELD_ADDED #/M/o/2",
	},
	"oneof field removed": {
		body("oneof o { int32 a = 1; int32 b = 2; }"), body("oneof o { int32 a = 1; }"),
		"ONEOF_FIELD_REMOVED #/M/o/2!",
	},
	"oneof renamed, one lost": {
		body("oneof o { int32 a = 1; int32 b = 2; }"), body("oneof p { int32 a = 1; }"),
		"ONEOF_REMOVED #/M/o | ONEOF_ADDED #/M/p | ONEOF_FIELD_REMOVED #/M/o/2!",
	},
	"oneof field required": {body2("oneof o { int32 a = 1; int32 b = 2; }"), body2("oneof o { int32 a = 1; } " +
		"required int32 b = 2;"), "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2 | REQUIRED_FIELD_ADDED #/M/2!"},
	"oneof message required": {body2("oneof o { int32 a = 1; M b = 2; }"), body2("oneof o { int32 a = 1; } " +
		"required M b = 2;"), "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2 | REQUIRED_FIELD_ADDED #/M/2!"},
	"oneof field out": {
		body("oneof o { int32 a = 1; int32 b = 2; }"),
		body("oneof o { int32 a = 1; } int32 b = 2;"), "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2",
	},
	"oneof field out, changed": {body("oneof o { int32 a = 1; int32 b = 2; }"), body("oneof o { int32 a = 1; } " +
		"string b = 2;"), "ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2 | FIELD_SCALAR_KIND_CHANGED #/M/2!"},
	"oneof field changed": {
		body("oneof o { int32 a = 1; }"), body("oneof o { string b = 1; }"),
		"FIELD_NAME_CHANGED #/M/o/1 | FIELD_SCALAR_KIND_CHANGED #/M/o/1!",
	},
	"oneof split off": {
		body("oneof o { int32 a = 1; int32 b = 2; }"),
		body("oneof o { int32 a = 1; } oneof p { int32 b = 2; }"), "ONEOF_ADDED #/M/p",
	},
	"two fields into a oneof": {
		body("int32 a = 1; int32 b = 2;"), body("oneof o { int32 a = 1; int32 b = 2; }"),
		"MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o! | ONEOF_ADDED #/M/o",
	},
	"two into an old oneof": {
		body("int32 a = 1; int32 b = 2; oneof o { int32 c = 3; }"),
		body("oneof o { int32 a = 1; int32 b = 2; int32 c = 3; }"), "MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o!",
	},
	"one into an old oneof": {
		body("int32 a = 1; oneof o { int32 c = 3; }"),
		body("oneof o { int32 a = 1; int32 c = 3; }"), "FIELD_MOVED_TO_EXISTING_ONEOF #/M/o!",
	},
	"one into a renamed oneof": {
		body("int32 a = 1; oneof o { int32 c = 3; }"),
		body("oneof p { int32 a = 1; int32 c = 3; }"),
		"FIELD_MOVED_TO_EXISTING_ONEOF #/M/p! | ONEOF_REMOVED #/M/o | ONEOF_ADDED #/M/p",
	},
	"from oneof to oneof": {
		body("oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; }"),
		body("oneof o { int32 a = 1; } oneof p { int32 b = 2; int32 c = 3; }"), "FIELD_MOVED_TO_EXISTING_ONEOF #/M/p!",
	},
	"oneofs merged": {
		body("oneof o { int32 a = 1; } oneof p { int32 b = 2; }"), body("oneof q { int32 " +
			"a = 1; int32 b = 2; }"),
		"FIELD_MOVED_TO_EXISTING_ONEOF #/M/q! | ONEOF_REMOVED #/M/o | ONEOF_REMOVED #/M/p | ONEOF_ADDED #/M/q",
	},
	"optional is no oneof": {
		body("optional int32 a = 1; optional int32 b = 2;"),
		body("int32 a = 1; int32 b = 2;"), "",
	},
	"optional into a oneof": {body("optional int32 a = 1;"), body("oneof o { int32 a = 1; }"), "ONEOF_ADDED #/M/o"},
	"options are not compared": {body("int32 a = 1;"), "syntax = \"proto3\"; option java_package = \"x\"; message " +
		"M { option deprecated = true; int32 a = 1 [json_name = \"z\"]; }", ""},
	"services are not compared": {body("") + "service S { rpc R(M) returns (M); }", body(""), ""},
	"extends are not compared": {
		"message M { extensions 1 to 9; } extend M { optional int32 a = 1; }",
		"message M { extensions 1 to 9; } extend M { optional string b = 2; }", "",
	},
	"groups are not compared": {
		body2("optional group G = 1 { optional int32 a = 1; }"),
		body2("optional group H = 1 { optional string a = 1; }"), "",
	},
	"syntax is not compared": {
		"syntax = \"proto2\"; message M { optional int32 a = 1; }",
		"syntax = \"proto3\"; message M { optional int32 a = 1; }", "",
	},
	"proto2 to implicit proto3": {
		body2("optional int32 a = 1; required string b = 2;"),
		body("int32 a = 1; string b = 2;"), "",
	},
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for name, tc := range comparisons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, mustParse(t, tc.old), mustParse(t, tc.new), tc.want)
		})
	}
}

func check(t *testing.T, old, new *Schema, want string) {
	t.Helper()
	differences, err := Compare(old, new, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(differences); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if same, err := Compare(new, new, nil); err != nil || len(same) > 0 {
		t.Errorf("the new schema differs from itself: %v %v", same, err)
	}
}

func summary(differences []Difference) string {
	var words []string
	for _, d := range differences {
		word := d.Type + " " + d.Path
		if !d.Compatible {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, " | ")
}

// Every type of difference has at least two cases above or below.
func TestEveryDifferenceIsTested(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, tc := range comparisons {
		for word := range strings.SplitSeq(tc.want, " | ") {
			typ, _, _ := strings.Cut(word, " ")
			seen[typ]++
		}
	}
	all := []string{
		packageChanged, messageAdded, messageRemoved, messageMoved, enumAdded, enumRemoved, enumConstAdded,
		enumConstChanged, enumConstRemoved, fieldAdded, fieldRemoved, fieldNameChanged, fieldKindChanged,
		fieldScalarKindChanged, fieldNamedTypeChanged, fieldNumericLabelChanged, fieldStringLabelChanged,
		requiredFieldAdded, requiredFieldRemoved, oneofAdded, oneofRemoved, oneofFieldAdded, oneofFieldRemoved,
		oneofFieldMovedToTop, fieldsMovedToOneof, fieldMovedToOldOneof,
	}
	for _, typ := range all {
		if seen[typ] < 2 {
			t.Errorf("%s has %d cases", typ, seen[typ])
		}
	}
}

func TestCompareReferences(t *testing.T) {
	t.Parallel()
	v1 := mustParse(t, `syntax = "proto3"; package geo; message Outer { message Place { int32 id = 1; } }`)
	v2 := mustParse(t, `syntax = "proto3"; package geo; message Outer { message Place { string id = 1; } }`)
	moved := mustParse(t, `syntax = "proto3"; package geo.v2; message Outer { message Place { int32 id = 1; } }`)
	using := func(path, typ string, s *Schema, version int) *Schema {
		refs := []Reference{{Name: path, Subject: path, Version: version, Schema: s}}
		out, err := Parse(`syntax = "proto3"; import "`+path+`"; message M { `+typ+` a = 1; `+typ+` b = 2; }`, refs)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	local := mustParse(t,
		`syntax = "proto3"; message M { Outer.Place a = 1; Outer.Place b = 2; } message Outer { message Place { `+
			`int32 id = 1; } }`)
	broken := "FIELD_SCALAR_KIND_CHANGED #/Outer/Place/1! | FIELD_NAMED_TYPE_CHANGED #/M/1! | " +
		"FIELD_NAMED_TYPE_CHANGED #/M/2!"
	tests := map[string]struct {
		old, new *Schema
		want     string
	}{
		"same": {using("p.proto", "geo.Outer.Place", v1, 1), using("p.proto", "geo.Outer.Place", v1, 1), ""},
		"other version": {
			using("p.proto", "geo.Outer.Place", v1, 1),
			using("p.proto", "geo.Outer.Place", v2, 2), broken,
		},
		"other subject": {
			using("p.proto", "geo.Outer.Place", v1, 1),
			using("q.proto", "geo.Outer.Place", v2, 1), broken,
		},
		"other package": {
			using("p.proto", "geo.Outer.Place", v1, 1),
			using("q.proto", "geo.v2.Outer.Place", moved, 1), "",
		},
		"same version claimed": {
			using("p.proto", "geo.Outer.Place", v1, 1),
			using("p.proto", "geo.Outer.Place", v2, 1), "",
		},
		"moved to a reference": {local, using("p.proto", "geo.Outer.Place", v1, 1), "MESSAGE_REMOVED #/Outer!"},
		"moved into the file":  {using("p.proto", "geo.Outer.Place", v1, 1), local, "MESSAGE_ADDED #/Outer"},
		"other type": {
			using("p.proto", "geo.Outer.Place", v1, 1), using("p.proto", "geo.Outer", v1, 1),
			"FIELD_NAMED_TYPE_CHANGED #/M/1! | FIELD_NAMED_TYPE_CHANGED #/M/2!",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, tc.old, tc.new, tc.want)
		})
	}
}

func TestCompareUnchecked(t *testing.T) {
	t.Parallel()
	parse := func(text string) *Schema {
		s, err := ParseUnchecked(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	lost := parse(`syntax = "proto3"; package p; message M { bad.Message a = 1; .p.Gone b = 2; }`)
	check(t, lost, lost, "")
	check(t, lost, parse(`syntax = "proto3"; package p; message M { bad.Other a = 1; Gone b = 2; }`),
		"FIELD_NAMED_TYPE_CHANGED #/M/1!")
	check(t, lost, parse(`syntax = "proto3"; package p; message M { bad.Message a = 1; int32 b = 2; }`),
		"FIELD_KIND_CHANGED #/M/2!")
}

func TestCompareRejectsLongChains(t *testing.T) {
	t.Parallel()
	chain := func(typ string, n int) *Schema {
		var b strings.Builder
		b.WriteString(`syntax = "proto3"; package dep;`)
		for i := range n {
			fmt.Fprintf(&b, "message M%d { M%d next = 1; %s x = 2; }\n", i, (i+1)%n, typ)
		}
		return mustParse(t, b.String())
	}
	using := func(dep *Schema, version int) *Schema {
		s, err := Parse(`syntax = "proto3"; import "d.proto"; message M { dep.M0 m = 1; }`,
			[]Reference{{Name: "d.proto", Subject: "d", Version: version, Schema: dep}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	_, err := Compare(using(chain("int32", 3000), 1), using(chain("string", 3000), 2), nil)
	if !errors.Is(err, ErrTooComplex) {
		t.Errorf("got %v, want %v", err, ErrTooComplex)
	}
	d, err := Compare(using(chain("int32", 300), 1), using(chain("string", 300), 2), nil)
	if err != nil || len(d) != 300+300 {
		t.Errorf("got %d differences, %v, want 600", len(d), err)
	}
}

func TestWording(t *testing.T) {
	t.Parallel()
	differences, err := Compare(mustParse(t, body("int32 a = 1;")), mustParse(t, body("string a = 1;")), nil)
	if err != nil || len(differences) != 1 {
		t.Fatal(differences, err)
	}
	want := `{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path '#/M/1' in the ` +
		`new schema does not match its kind in the old schema"}`
	if d := cmp.Diff(want, differences[0].String()); d != "" {
		t.Error(d)
	}
	want = `{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path '#/M/1' in the ` +
		`old schema does not match its kind in the new schema"}`
	if d := cmp.Diff(want, differences[0].Describe("old", "new")); d != "" {
		t.Error(d)
	}
	for typ := range wordings {
		text := newDifference(typ, "#/X").Describe("NEW", "OLD")
		for _, word := range []string{"'#/X'", "NEW schema", "OLD schema"} {
			if !strings.Contains(text, word) {
				t.Errorf("%s: %q does not contain %q", typ, text, word)
			}
		}
	}
	if got := (Difference{
		Type: fieldAdded, Path: "#/M/1",
		Compatible: true,
	}).String(); got != `{errorType:"FIELD_ADDED", description:""}` {
		t.Errorf("compatible difference: got %s, want one without a description", got)
	}
}

// The first case is the order in which Confluent Schema Registry lists these names.
func TestHashOrder(t *testing.T) {
	t.Parallel()
	got := hashOrder([]string{"TestMessage", "TestMessage2"}, []string{"TestMessage", "TestMessage3"})
	if d := cmp.Diff([]string{"TestMessage2", "TestMessage3", "TestMessage"}, got); d != "" {
		t.Error(d)
	}
	var many []string
	for c := 'a'; c <= 'z'; c++ {
		many = append(many, string(c))
	}
	// 26 names need a table of 64 buckets, where 'a' (97) falls into bucket 33.
	if d := cmp.Diff(many, hashOrder(many, nil)); d != "" {
		t.Error(d)
	}
}
