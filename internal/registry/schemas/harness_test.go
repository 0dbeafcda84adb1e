package schemas

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
)

func openJournal(t testing.TB) engine.Journal {
	t.Helper()
	e, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	j, err := e.Journal(context.WithoutCancel(t.Context()), "registry")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func openRegistry(t testing.TB, j engine.Journal) *Registry {
	t.Helper()
	r, err := Open(context.WithoutCancel(t.Context()), j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// avroRecord returns the schema of an Avro record with these fields. A field whose
// name ends with ? gets a default.
func avroRecord(name string, fields ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, `{"type":"record","name":%q,"fields":[`, name)
	for i, f := range fields {
		if i > 0 {
			text.WriteByte(',')
		}
		if bare, ok := strings.CutSuffix(f, "?"); ok {
			fmt.Fprintf(&text, `{"name":%q,"type":"string","default":""}`, bare)
		} else {
			fmt.Fprintf(&text, `{"name":%q,"type":"string"}`, f)
		}
	}
	text.WriteString("]}")
	return text.String()
}

func mustRegister(t testing.TB, r *Registry, subject, text string) Registered {
	t.Helper()
	got, err := r.Register(t.Context(), subject, &Draft{Type: Avro, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
