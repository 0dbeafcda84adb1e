package avro

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// seedTexts returns the recorded schemas.
func seedTexts(f *testing.F) []string {
	f.Helper()
	data, err := os.ReadFile("testdata/parse.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	var texts []string
	for line := range bytes.Lines(data) {
		var recorded struct{ Schema string }
		if err := json.Unmarshal(line, &recorded); err != nil {
			f.Fatal(err)
		}
		texts = append(texts, recorded.Schema)
	}
	return texts
}

func FuzzParse(f *testing.F) {
	for _, text := range seedTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, nil)
		if err != nil || mixesNamespaces(s) {
			return
		}
		checkProperties(t, s)
		if !json.Valid([]byte(s.Canonical())) || !json.Valid([]byte(s.Normalized())) {
			t.Errorf("not JSON: %s\n%s", s.Canonical(), s.Normalized())
		}
	})
}

// mixesNamespaces reports whether a schema has names both inside and outside the null
// namespace. The canonical text of such a schema can be ambiguous, as in Java.
func mixesNamespaces(s *Schema) bool {
	var with, without bool
	note := func(name typeName) {
		with = with || name.space != ""
		without = without || name.space == ""
	}
	for _, t := range s.types {
		note(t.named.name)
		for _, a := range t.named.aliases {
			note(a)
		}
	}
	return with && without
}

func FuzzCheck(f *testing.F) {
	texts := seedTexts(f)
	for i := range texts[1:] {
		f.Add(texts[i], texts[i+1])
	}
	f.Fuzz(func(t *testing.T, reader, writer string) {
		r, err := Parse(reader, nil)
		if err != nil {
			return
		}
		w, err := Parse(writer, nil)
		if err != nil {
			return
		}
		for _, i := range check(r, w) {
			if i.Describe("new", "old") == "" || i.Path == "" || i.Path[0] != '/' {
				t.Errorf("problem %+v", i)
			}
		}
	})
}

func FuzzDecodeDatum(f *testing.F) {
	for i, text := range seedTexts(f) {
		f.Add(text, []byte{byte(i), 2, 0, 4, 'a', 'b', 0})
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		s, err := Parse(text, nil)
		if err != nil {
			return
		}
		if s.DecodeDatum(data) == nil && len(data) > 0 && s.DecodeDatum(data[:len(data)-1]) == nil {
			// A datum determines its own end, so no prefix of it can be a datum.
			t.Errorf("%s: both %x and its beginning are data", text, data)
		}
	})
}

func FuzzValidateJSON(f *testing.F) {
	for _, text := range seedTexts(f) {
		f.Add(text, []byte(`{"a":1,"b":["x",null],"c":{"d":1.5}}`))
		f.Add(text, []byte(`"X"`))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		s, err := Parse(text, nil)
		if err != nil {
			return
		}
		if s.ValidateJSON(data) == nil && !json.Valid(data) {
			t.Errorf("%s accepts %q, which is not JSON", text, data)
		}
	})
}
