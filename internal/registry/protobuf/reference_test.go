package protobuf

import (
	"fmt"
	"strings"
	"testing"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	address := mustParse(t, `syntax = "proto3"; package geo; message Address { string street = 1; }`)
	person := mustParse(t,
		`syntax = "proto3"; package hr; import "address.proto"; message Person { geo.Address home = 1; }`,
		"address.proto", address)

	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		s := mustParse(t, `syntax = "proto3"; package geo.v1; import "address.proto"; message M { Address a = 1; }`,
			"address.proto", address)
		if !strings.Contains(s.Normalized(), ".geo.Address a = 1;") {
			t.Error(s.Normalized())
		}
		if len(s.refs) != 1 || s.refs[0].Schema != address {
			t.Errorf("references: got %v, want only the address", s.refs)
		}
	})
	t.Run("transitive", func(t *testing.T) {
		t.Parallel()
		s := mustParse(t, `syntax = "proto3"; import "person.proto"; message M { hr.Person p = 1; }`,
			"person.proto", person)
		if want := ".hr.Person p = 1;"; !strings.Contains(s.Normalized(), want) {
			t.Errorf("got %s, want it to contain %q", s.Normalized(), want)
		}
	})
	t.Run("transitive types are not visible", func(t *testing.T) {
		t.Parallel()
		_, err := Parse(`syntax = "proto3"; import "person.proto"; message M { geo.Address p = 1; }`,
			references("person.proto", person))
		if err == nil {
			t.Error("accepted")
		}
	})
	t.Run("public imports pass types on", func(t *testing.T) {
		t.Parallel()
		all := mustParse(t, `syntax = "proto3"; import public "address.proto";`, "address.proto", address)
		s := mustParse(t, `syntax = "proto3"; import "all.proto"; message M { geo.Address a = 1; }`, "all.proto", all)
		if !strings.Contains(s.Normalized(), ".geo.Address a = 1;") {
			t.Error(s.Normalized())
		}
	})
	t.Run("unused references do no harm", func(t *testing.T) {
		t.Parallel()
		mustParse(t, `syntax = "proto3"; message M {}`, "person.proto", person, "address.proto", address)
	})
	t.Run("wrong name", func(t *testing.T) {
		t.Parallel()
		_, err := Parse(`syntax = "proto3"; import "address.proto"; message M {}`, references("other.proto", address))
		if err == nil || !strings.Contains(err.Error(), `import "address.proto" is not built in`) {
			t.Errorf("got %v, want an error that the import is not built in", err)
		}
	})
	t.Run("two versions of one file", func(t *testing.T) {
		t.Parallel()
		newer := mustParse(t, `syntax = "proto3"; package geo; message Address { string street = 1; string city = 2; }`)
		shop := mustParse(t,
			`syntax = "proto3"; package shop; import "address.proto"; message Shop { geo.Address at = 1; }`,
			"address.proto", newer)
		mustParse(t, `syntax = "proto3"; import "person.proto"; import "shop.proto"; message M { hr.Person p = 1; `+
			`shop.Shop s = 2; }`,
			"person.proto", person, "shop.proto", shop)
	})
	t.Run("the schema's own reference wins", func(t *testing.T) {
		t.Parallel()
		newer := mustParse(t, `syntax = "proto3"; package geo; message Address { string street = 1; } message City {}`)
		mustParse(t, `syntax = "proto3"; import "person.proto"; import "address.proto"; message M { hr.Person p = 1; `+
			`geo.City c = 2; }`,
			"person.proto", person, "address.proto", newer)
	})
	t.Run("import cycle by names", func(t *testing.T) {
		t.Parallel()
		b := mustParse(t, `syntax = "proto3"; package b; import "a.proto"; message B {}`, "a.proto", address)
		a := mustParse(t, `syntax = "proto3"; package a; import "b.proto"; message A {}`, "b.proto", b)
		_, err := Parse(`syntax = "proto3"; import "a.proto"; message M {}`, references("a.proto", a))
		if err == nil || !strings.Contains(err.Error(), "cycle") {
			t.Errorf("got %v, want an error about a cycle", err)
		}
	})
	t.Run("unresolved", func(t *testing.T) {
		t.Parallel()
		_, err := Parse(`syntax = "proto3"; message M {}`, []Reference{{Name: "x.proto", Subject: "x", Version: 3}})
		if err == nil || !strings.Contains(err.Error(),
			`reference "x.proto" (subject "x", version 3) is not resolved`) {
			t.Errorf("got %v, want an error that x.proto is not resolved", err)
		}
	})
	t.Run("custom options", func(t *testing.T) {
		t.Parallel()
		notes := mustParse(t, `syntax = "proto3"; package notes; import "google/protobuf/descriptor.proto";
			message Note { string text = 1; repeated string by = 2; }
			extend google.protobuf.FieldOptions { Note note = 50000; }`)
		s := mustParse(t, `syntax = "proto3"; import "notes.proto"; message M { int32 a = 1 [(notes.note).by = "b", `+
			`(notes.note).text = "t"]; }`,
			"notes.proto", notes)
		want := "  int32 a = 1 [(notes.note) = {\n    by: \"b\",\n    text: \"t\"\n  }];\n"
		if !strings.Contains(s.Normalized(), want) {
			t.Errorf("normalized text does not contain %q:\n%s", want, s.Normalized())
		}
		_, err := Parse(`syntax = "proto3"; import "notes.proto"; message M { int32 a = 1 [(notes.note).nope = 1]; }`,
			references("notes.proto", notes))
		if err == nil {
			t.Error("unknown field of a known option is accepted")
		}
	})
}

// A lattice of public imports has exponentially many paths.
func TestPublicImportLattice(t *testing.T) {
	t.Parallel()
	left := mustParse(t, `syntax = "proto3"; package l0; message M {}`)
	right := mustParse(t, `syntax = "proto3"; package r0; message M {}`)
	for i := 1; ; i++ {
		refs := []any{fmt.Sprintf("l%d", i-1), left, fmt.Sprintf("r%d", i-1), right}
		text := fmt.Sprintf(`syntax = "proto3"; import public "l%d"; import public "r%d"; package %%s%d; message M {}`,
			i-1, i-1, i)
		l, err := Parse(fmt.Sprintf(text, "l"), references(refs...))
		if err != nil {
			if !strings.Contains(err.Error(), "public imports") {
				t.Fatal(err)
			}
			return
		}
		left, right = l, mustParse(t, fmt.Sprintf(text, "r"), refs...)
		if i > 40 {
			t.Fatal("accepted")
		}
	}
}
