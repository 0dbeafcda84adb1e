package protobuf

import (
	"strings"
	"testing"
)

var fuzzSeeds = []string{
	`syntax = "proto3"; message M { string a = 1; }`,
	`message M { optional group G = 1 { required int32 x = 1 [default = -0x1]; } extensions 100 to max; reserved ` +
		`"a", 'b'; }`,
	`edition = "2023"; package a.b; message M { int32 a = 1 [features.field_presence = IMPLICIT]; reserved foo; }`,
	`syntax = "proto3"; import "google/protobuf/descriptor.proto"; extend google.protobuf.FieldOptions { M m = 50000; }
message M { map<string, M> m = 1 [(m) = {m: [{key: "\377" value < >}]}]; oneof o { bool b = 2; } }`,
	`syntax = "proto3"; message M { repeated MapEntry map = 1; message MapEntry { option map_entry = true; string ` +
		`key = 1; int32 value = 2; } }`,
	`syntax = "proto3"; message A { optional int32 x = 1 [json_name = "y", (who).knows = {a: inf, [b.c]: -nan}]; } ` +
		`service S { rpc R(stream A) returns (A) {} }`,
	`enum E { option allow_alias = true; A = 0; B = 0; reserved -5 to -1, 7; }`,
	`CgF4IgwKAU0SBwoBYRgBKAk=`,
	`syntax = "proto3"; import public "a.proto"; import weak "google/type/date.proto";`,
	`syntax = "";`, ";", "message \x00 {", "/* ", "\"\\\xc2", `option a = "\`,
	`syntax = "proto3"; message M { M.M.M m = 1; .M n = 2; }`,
}

// FuzzParse checks that the printed text of every valid schema parses, and that
// printing it again yields the same text.
func FuzzParse(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	for seed := range 4 {
		f.Add(newGenerator(uint64(seed)).file())
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		s, err := ParseUnchecked(text, nil)
		if err == nil {
			stable(t, s, ParseUnchecked)
		} else if strings.Contains(err.Error(), "cannot be compiled") {
			t.Fatalf("panicked: %v", err)
		}
		if s, err := Parse(text, nil); err == nil {
			stable(t, s, Parse)
		}
	})
}

func stable(t *testing.T, s *Schema, parse func(string, []Reference) (*Schema, error)) {
	t.Helper()
	for name, print := range map[string]func(*Schema) string{
		"canonical": (*Schema).Canonical, "normalized": (*Schema).Normalized,
	} {
		printed := print(s)
		again, err := parse(printed, nil)
		if err != nil {
			t.Fatalf("%s text does not parse: %v\n%s", name, err, printed)
		}
		if twice := print(again); twice != printed {
			t.Fatalf("%s text is not stable:\n%s\n---\n%s", name, printed, twice)
		}
		if name == "normalized" {
			continue // sorting may change the first value of an enum
		}
		if differences, err := Compare(s, again, nil); err != nil || len(differences) > 0 {
			t.Fatalf("%s text differs from its schema: %v %v", name, differences, err)
		}
	}
}

func FuzzCompare(f *testing.F) {
	for i, old := range fuzzSeeds {
		f.Add(old, fuzzSeeds[(i+1)%len(fuzzSeeds)])
	}
	f.Fuzz(func(t *testing.T, old, new string) {
		if len(old)+len(new) > 1<<16 {
			return
		}
		was, err := ParseUnchecked(old, nil)
		if err != nil {
			return
		}
		now, err := ParseUnchecked(new, nil)
		if err != nil {
			return
		}
		forth, err := Compare(was, now, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Compare(was, now, nil)
		if err != nil || len(again) != len(forth) {
			t.Fatalf("%v and then %v (%v)", forth, again, err)
		}
		for i := range forth {
			if forth[i] != again[i] || forth[i].String() == "" {
				t.Fatalf("%v and then %v", forth, again)
			}
		}
	})
}
