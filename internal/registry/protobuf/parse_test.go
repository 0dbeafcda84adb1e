package protobuf

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/base/errs"
)

// mustParse parses a schema and ends the test if it is invalid. refs are pairs
// of a name and a *Schema; the name of a reference is also its subject.
func mustParse(t *testing.T, text string, refs ...any) *Schema {
	t.Helper()
	s, err := Parse(text, references(refs...))
	if err != nil {
		t.Fatalf("parse: %v\n%s", err, text)
	}
	return s
}

func references(refs ...any) []Reference {
	var out []Reference
	for i := 0; i < len(refs); i += 2 {
		name := refs[i].(string)
		out = append(out, Reference{Name: name, Subject: name, Version: 1, Schema: refs[i+1].(*Schema)})
	}
	return out
}

func TestParseRejectsInvalidSchemas(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"nothing":       {"", "schema is empty"},
		"blanks":        {" \n\t", "schema is empty"},
		"comments":      {"// hello\n/* world */", "schema declares nothing"},
		"syntax error":  {"syntax = \"proto3\";\nmessage M {\n  string = 1;\n}", "3:10: syntax error: unexpected '='"},
		"missing brace": {"syntax = \"proto3\";\nmessage M {", "2:12: syntax error"},
		"unknown type":  {"syntax = \"proto3\";\nmessage M {\n  Nope x = 1;\n}", "3:3: field M.x: unknown type Nope"},
		"several problems": {
			"syntax = \"proto3\"; message M { A a = 1; B b = 2; }",
			"unknown type A; 1:41: field M.b: unknown type B",
		},
		"duplicate tag": {
			"syntax = \"proto3\"; message M { int32 a = 1; int32 b = 1; }",
			"fields a and b both have the same tag 1",
		},
		"duplicate name": {"syntax = \"proto3\"; message M {} message M {}", "symbol \"M\" already defined at 1:28"},
		"proto3 enum":    {"syntax = \"proto3\"; enum E { A = 1; }", "first value of enum have numeric value zero"},
		"proto3 required": {
			"syntax = \"proto3\"; message M { required int32 a = 1; }",
			"label 'required' is not allowed",
		},
		"proto2 no label": {"message M { int32 a = 1; }", "field has no label"},
		"reserved tag":    {"syntax = \"proto3\"; message M { reserved 1; int32 a = 1; }", "reserved range"},
		"tag zero":        {"syntax = \"proto3\"; message M { int32 a = 0; }", "tag number 0"},
		"no tag":          {"syntax = \"proto3\"; message M { int32 a; }", "missing field tag number"},
		"huge tag":        {"syntax = \"proto3\"; message M { int32 a = 536870912; }", "tag number 536870912"},
		"unknown syntax":  {"syntax = \"proto4\"; message M {}", "1:10: syntax value must be"},
		"newer edition": {
			"// hello\nedition = \"2024\"; message M {}",
			"edition \"2024\" is not supported; use edition \"2023\"",
		},
		"newer words":        {"edition = '2024'; export message M {}", "edition \"2024\" is not supported"},
		"edition of nothing": {"edition = ", "syntax error"},
		"unknown option":     {"syntax = \"proto3\"; option nope = 1;", "nope"},
		"wrong option type":  {"syntax = \"proto3\"; option java_package = 1;", "java_package"},
		"missing import": {
			"syntax = \"proto3\";\nimport \"nope.proto\";",
			"2:8: import \"nope.proto\" is not built in, and no reference has that name",
		},
		"map key": {"syntax = \"proto3\"; message M { map<float, int32> m = 1; }", "1:"},
		"lonely map entry": {"syntax = \"proto3\"; message M { message E { option map_entry = true; int32 key = " +
			"1; int32 value = 2; } }", "map_entry option should not be set explicitly"},
		"misnamed map entry": {"syntax = \"proto3\"; message M { repeated E m = 1; message E { option map_entry = " +
			"true; int32 key = 1; int32 value = 2; } }", "map_entry"},
		"json":        {`{"type": "record"}`, "1:1: syntax error"},
		"not base64":  {"Zm9v", "syntax error"},
		"bad UTF-8":   {"syntax = \"proto3\"; option java_package = \"\xff\";", "UTF-8"},
		"deep braces": {strings.Repeat("message M {", 100000), "brackets are nested too deeply"},
		"deep messages": {
			`syntax = "proto3";` + strings.Repeat("message M {", 40) + strings.Repeat("}", 40),
			"nesting depth must be less than 32",
		},
		"deep literal":    {`option (x) = ` + strings.Repeat("{a <", 50000), "brackets are nested too deeply"},
		"long name":       {"package " + strings.Repeat("a.", 100) + "a;", "name is too long"},
		"long word":       {"message " + strings.Repeat("a", 5000) + " {}", "name is too long"},
		"huge literal":    {"option (x) = {" + strings.Repeat("p{}", 700000) + "};", "too many option values"},
		"imports":         {importList(3000), "more than 2000 imports"},
		"optional fields": {optionalFields(12000), "too many oneofs and optional fields"},
		"error beside custom": {
			"syntax = \"proto3\";\nmessage M {\n  Nope a = 1 [(who).knows = 1];\n}",
			"3:3: field M.a: unknown type Nope",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tc.text, nil)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q does not contain %q", err, tc.want)
			}
			if !errors.Is(err, ErrInvalid) || errs.KindOf(err) != errs.Invalid {
				t.Errorf("%v is not ErrInvalid", err)
			}
		})
	}
}

func importList(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "import \"f%d.proto\";\n", i)
	}
	return b.String()
}

func optionalFields(n int) string {
	var b strings.Builder
	b.WriteString("syntax = \"proto3\";\nmessage M {\n")
	for i := range n {
		fmt.Fprintf(&b, "optional int32 f%d = %d;\n", i, i+1)
	}
	return b.String() + "}"
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"syntax alone":  `syntax = "proto3";`,
		"no syntax":     `message M { optional int32 a = 1; }`,
		"edition":       `edition = "2023"; message M { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; }`,
		"groups":        `message M { repeated group Line = 1 { optional int32 a = 1; } }`,
		"unused import": `syntax = "proto3"; import "google/protobuf/any.proto"; message M {}`,
		"unknown custom": `syntax = "proto3"; option (my.file) = true; message M { option (x).y = {z: 1}; oneof o { ` +
			`option (my_option) = true; int32 a = 1 [(f) = "s"]; } }`,
		"meta": `syntax = "proto3"; import "confluent/type/decimal.proto"; message M { ` +
			`confluent.type.Decimal d = 1 [(confluent.field_meta) = {params: {key: "scale", value: "2"}}]; }`,
		"spelled map": `syntax = "proto3"; message M { repeated M.MapFieldEntry map_field = 1; message MapFieldEntry ` +
			`{ option map_entry = true; string key = 1; M value = 2; } }`,
		"long line":  `syntax = "proto3"; message M {` + strings.Repeat(" ", 20000) + `string a = 1; }`,
		"descriptor": `Cg5tZXNzYWdlcy5wcm90byIRCgNLZXkSCgoCaWQYASABKAViBnByb3RvMw==`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustParse(t, text)
		})
	}
}

func TestBuiltInImports(t *testing.T) {
	t.Parallel()
	types := map[string]string{
		"google/protobuf/any":            "google.protobuf.Any",
		"google/protobuf/api":            "google.protobuf.Api",
		"google/protobuf/descriptor":     "google.protobuf.FieldOptions",
		"google/protobuf/duration":       "google.protobuf.Duration",
		"google/protobuf/empty":          "google.protobuf.Empty",
		"google/protobuf/field_mask":     "google.protobuf.FieldMask",
		"google/protobuf/source_context": "google.protobuf.SourceContext",
		"google/protobuf/struct":         "google.protobuf.Value",
		"google/protobuf/timestamp":      "google.protobuf.Timestamp",
		"google/protobuf/type":           "google.protobuf.Type",
		"google/protobuf/wrappers":       "google.protobuf.StringValue",
		"google/type/calendar_period":    "google.type.CalendarPeriod",
		"google/type/color":              "google.type.Color",
		"google/type/date":               "google.type.Date",
		"google/type/datetime":           "google.type.DateTime",
		"google/type/dayofweek":          "google.type.DayOfWeek",
		"google/type/decimal":            "google.type.Decimal",
		"google/type/expr":               "google.type.Expr",
		"google/type/fraction":           "google.type.Fraction",
		"google/type/interval":           "google.type.Interval",
		"google/type/latlng":             "google.type.LatLng",
		"google/type/money":              "google.type.Money",
		"google/type/month":              "google.type.Month",
		"google/type/phone_number":       "google.type.PhoneNumber",
		"google/type/postal_address":     "google.type.PostalAddress",
		"google/type/quaternion":         "google.type.Quaternion",
		"google/type/timeofday":          "google.type.TimeOfDay",
		"google/type/localized_text":     "google.type.LocalizedText",
		"confluent/meta":                 "confluent.Meta",
		"confluent/type/decimal":         "confluent.type.Decimal",
		"confluent/types/decimal":        "confluent.type.Decimal",
		"confluent/type/variant":         "confluent.type.Variant",
	}
	for path, name := range types {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, fmt.Sprintf("syntax = \"proto3\"; import \"%s.proto\"; message M { %s f = 1; }", path,
				name))
			if want := "." + name + " f = 1;"; !strings.Contains(s.Normalized(), want) {
				t.Errorf("normalized text does not contain %q:\n%s", want, s.Normalized())
			}
		})
	}
}

// Clients may register a copy of a built-in file under its own subject.
func TestBuiltInFilesCanBeRegistered(t *testing.T) {
	t.Parallel()
	for path, src := range builtins() {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s, err := Parse(printFile(src.model), nil)
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("syntax = \"proto3\"; import %q; message M {}", path)
			mustParse(t, text, path, s)
		})
	}
}

func TestParseUnchecked(t *testing.T) {
	t.Parallel()
	text := `import "gone.proto"; message M { Gone a = 1; optional .x.Lost b = 1; }`
	if _, err := Parse(text, nil); err == nil {
		t.Fatal("Parse accepts it")
	}
	s, err := ParseUnchecked(text, []Reference{{Name: "gone.proto", Subject: "gone", Version: 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := "\nimport \"gone.proto\";\n\nmessage M {\n  Gone a = 1;\n  optional .x.Lost b = 1;\n}\n"
	if s.Canonical() != want {
		t.Errorf("canonical = %q, want %q", s.Canonical(), want)
	}
	if s.Normalized() != want {
		t.Errorf("normalized = %q, want %q", s.Normalized(), want)
	}
	if _, err := ParseUnchecked("message {", nil); err == nil {
		t.Error("ParseUnchecked accepts bad syntax")
	}
	_, err = Parse(`import "m.proto"; message N { optional M m = 1; }`, references("m.proto", s))
	if err == nil || !strings.Contains(err.Error(),
		`reference "gone.proto" (subject "gone", version 1) is not resolved`) {
		t.Errorf("schema that refers to it: got %v, want an error that gone.proto is not resolved", err)
	}
}
