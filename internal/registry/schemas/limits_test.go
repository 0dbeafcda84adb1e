package schemas

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/lru"
	"freshet/test/growth"
)

// The registry accepts or rejects every schema at a cost that grows with its size, not faster. Its time
// limit is switched off, so that the load of the machine does not decide.
func TestHeavySchemasHaveLinearCost(t *testing.T) { //nolint:paralleltest // measures CPU time
	size := 6_000
	if os.Getenv("FRESHET_TEST_HEAVY") != "" {
		size = 60_000 // 5 MB
	}
	nested := func(open, inner, end string, depth int) string {
		return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
	}
	for name, c := range map[string]struct {
		language Type
		size     int
		text     func(size int) string
	}{
		"avro of many fields": {Avro, size, func(size int) string {
			fields := make([]string, size)
			for i := range fields {
				fields[i] = fmt.Sprintf("field_with_a_rather_long_name_%d?", i)
			}
			return avroRecord("Big", fields...)
		}},
		"avro nested deeply": {Avro, 20_000, func(size int) string {
			return nested(`{"type":"array","items":`, `"int"`, "}", size)
		}},
		"json nested oneOf": {JSON, 10_000, func(size int) string {
			return nested(`{"oneOf":[{"type":"string"},`, `{}`, "]}", size)
		}},
		"json wide oneOf": {JSON, 5_000, func(size int) string {
			return `{"oneOf":[` + strings.TrimSuffix(
				strings.Repeat(`{"type":"object","properties":{"a":{"type":"string"}}},`, size), ",") + `]}`
		}},
		"json recursive refs": {JSON, 1, func(int) string {
			return `{"$ref":"#/definitions/a","definitions":{` +
				`"a":{"oneOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/b"}]},` +
				`"b":{"anyOf":[{"$ref":"#/definitions/b"},{"$ref":"#/definitions/a"}]}}}`
		}},
		"protobuf nested deeply": {Protobuf, 10_000, func(size int) string {
			return "syntax = \"proto3\";" + nested("message M {", "", "}", size)
		}},
		"protobuf of many fields": {Protobuf, size, protoMessage},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // measures CPU time
			growth.CheckLinear(t, name, c.size, func(size int) {
				r := openWithoutTimeLimit(t)
				text := c.text(size)
				for i, text := range []string{text, strings.Replace(text, "string", "bytes", 1)} {
					_, err := r.Register(t.Context(), "s", &Draft{Type: c.language, Text: text})
					if err != nil && !errors.Is(err, ErrInvalidSchema) && !errors.Is(err, ErrIncompatible) {
						t.Errorf("registration %d: %v", i, clip(err.Error(), 300))
					}
				}
			})
		})
	}
}

func openWithoutTimeLimit(t *testing.T) *Registry {
	t.Helper()
	r, err := Open(context.WithoutCancel(t.Context()), openJournal(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.checkTime = time.Hour
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func protoMessage(n int) string {
	var b strings.Builder
	b.WriteString("syntax = \"proto3\";\nmessage Big {\n")
	for i := range n {
		fmt.Fprintf(&b, "  string field_with_a_rather_long_name_%d = %d;\n", i, i+20_000)
	}
	b.WriteString("}\n")
	return b.String()
}

func TestReferencesAreBounded(t *testing.T) {
	t.Parallel()
	r := openRegistry(t, openJournal(t))
	mustRegister(t, r, "n0", avroRecord("N0", "a"))
	var err error
	for i := 1; i <= maxReferenceDepth+2 && err == nil; i++ {
		_, err = r.Register(t.Context(), fmt.Sprintf("n%d", i), &Draft{
			Type:       Avro,
			Text:       fmt.Sprintf(`{"type":"record","name":"N%d","fields":[{"name":"f","type":"N%d"}]}`, i, i-1),
			References: []Reference{{Name: "N", Subject: fmt.Sprintf("n%d", i-1), Version: 1}},
		})
	}
	if !errors.Is(err, ErrInvalidSchema) || !strings.Contains(err.Error(), "nested") {
		t.Errorf("long chain of references: got %v, want %v with the word \"nested\"", err, ErrInvalidSchema)
	}
	many := make([]Reference, maxReferences+1)
	for i := range many {
		many[i] = Reference{Name: "N0", Subject: "n0", Version: 1}
	}
	_, err = r.Register(t.Context(), "s", &Draft{Type: Avro, Text: `"int"`, References: many})
	if !errors.Is(err, ErrInvalidSchema) {
		t.Errorf("too many references: got %v, want %v", err, ErrInvalidSchema)
	}
	if _, err := r.Register(t.Context(), "s", &Draft{Type: Avro, Text: `"int"`, References: many[1:]}); err != nil {
		t.Errorf("maximum number of references: %v", err)
	}
}

func TestReferenceToAnotherLanguage(t *testing.T) {
	t.Parallel()
	r := openRegistry(t, openJournal(t))
	mustRegister(t, r, "avro", avroRecord("A", "a"))
	for _, d := range []*Draft{
		{Type: JSON, Text: `{"$ref":"a.json"}`, References: []Reference{{Name: "a.json", Subject: "avro", Version: 1}}},
		{
			Type: Protobuf, Text: "syntax = \"proto3\"; import \"a.proto\"; message M {}",
			References: []Reference{{Name: "a.proto", Subject: "avro", Version: 1}},
		},
	} {
		if _, err := r.Register(t.Context(), "s", d); !errors.Is(err, ErrInvalidSchema) ||
			!strings.Contains(err.Error(), errMixed.Error()) {
			t.Errorf("%s: got %v, want %v", d.Type, err, errMixed)
		}
	}
}

// TestCacheIsBounded checks that the cache keeps a schema in use, evicts a schema that
// is not used, and that a schema larger than the cache is parsed without caching.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	small := avroRecord("Small", "a")
	r := openRegistry(t, openJournal(t))
	r.parsed = lru.New[parseID, parsedSchema](8 * parsedCost(small))
	parse := func(text string) parsedSchema {
		t.Helper()
		f, err := r.newClosure(r.newJob(t.Context()),
			r.machine.View()).parseAs(parseKey(Avro, text, nil, nil, 0, false), Avro, text, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := parse(small), parse(avroRecord("Other", "a"))
	for i := range 100 {
		parse(avroRecord(fmt.Sprintf("R%d", i), "a"))
		if got := parse(small); got != first {
			t.Fatalf("schema in use was parsed again after %d other schemas", i+1)
		}
	}
	if got := parse(avroRecord("Other", "a")); got == second {
		t.Error("least recently used schema is still in the cache")
	}
	large := avroRecord("Large", strings.Repeat("x", len(small)*30))
	if parse(large) == parse(large) {
		t.Error("schema larger than the cache was cached")
	}
}
