package schemas

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// manyReferences is larger than in the largest public collections of one team.
const manyReferences = 662

// registerMany registers n files, each of which refers to up to eight others, and
// returns a draft that refers to all of them.
func registerMany(t testing.TB, r *Registry, n int) *Draft {
	t.Helper()
	var all []Reference
	for i := range n {
		var refs []Reference
		for k := 1; k <= 8 && i >= 12*k; k++ {
			refs = append(refs, all[i-12*k])
		}
		d := protoOf(i, refs)
		all = append(all, Reference{Name: fmt.Sprintf("r%d.proto", i), Subject: fmt.Sprintf("r%d", i), Version: 1})
		if _, err := r.Register(t.Context(), all[i].Subject, d); err != nil {
			t.Fatal(err)
		}
	}
	return protoOf(n, all)
}

func protoOf(i int, refs []Reference) *Draft {
	var imports, fields strings.Builder
	for k, ref := range refs {
		fmt.Fprintf(&imports, "import %q;\n", ref.Name)
		fmt.Fprintf(&fields, "  %s f%d = %d;\n", strings.ToUpper(ref.Subject), k, k+1)
	}
	return &Draft{
		Type: Protobuf, References: refs,
		Text: fmt.Sprintf("syntax = \"proto3\";\n%smessage R%d {\n%s}\n", imports.String(), i, fields.String()),
	}
}

// The work of a registration grows linearly with the number of schemas to which it
// refers, also when no parsed schema is in the cache. The test counts allocations,
// which do not depend on the load of the machine. It must not run in parallel with
// other tests, because their allocations would count, too.
func TestManyReferencesAreReadOnce(t *testing.T) {
	cost := func(n int) uint64 {
		j := openJournal(t)
		d := registerMany(t, openRegistry(t, j), n)
		cold := openRegistry(t, j)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := cold.Register(t.Context(), "all", d); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	few, many := cost(80), cost(320)
	t.Logf("%d allocations for 80 references, %d for 320", few, many)
	if limit := 10 * few; many > limit {
		t.Errorf("got %d allocations for four times as many references, want at most %d", many, limit)
	}
}

// BenchmarkManyReferences registers a schema that refers to hundreds of others, none
// of which is in the cache.
func BenchmarkManyReferences(b *testing.B) {
	j := openJournal(b)
	d := registerMany(b, openRegistry(b, j), manyReferences)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		cold := openRegistry(b, j)
		b.StartTimer()
		if _, err := cold.Register(b.Context(), fmt.Sprintf("all-%d", i), d); err != nil {
			b.Fatal(err)
		}
	}
}

// As soon as a registration has returned an id, every replica returns the schema of
// the id. A deletion is visible immediately on the replica that performed it, and on
// another replica after a read with a barrier.
func TestIDsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	j := openJournal(t)
	here, there := openRegistry(t, j), openRegistry(t, j)
	for i := range 50 {
		name := fmt.Sprintf("s%d", i)
		made := mustRegister(t, here, name, avroRecord(fmt.Sprintf("R%d", i), "a"))
		for where, r := range map[string]*Registry{"here": here, "there": there} {
			if s, err := r.SchemaByID(t.Context(), made.ID); err != nil || s.ID != made.ID {
				t.Fatalf("replica %s: got %v, want id %d", where, err, made.ID)
			}
		}
		for _, permanent := range []bool{false, true} {
			if _, err := here.DeleteSubject(t.Context(), name, permanent); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := here.SchemaByID(t.Context(), made.ID); !errors.Is(err, ErrSchemaNotFound) {
			t.Fatalf("replica here, after the deletion: got %v, want %v", err, ErrSchemaNotFound)
		}
		if _, err := there.Usages(t.Context(), made.ID, true); !errors.Is(err, ErrSchemaNotFound) {
			t.Fatalf("replica there, read with a barrier: got %v, want %v", err, ErrSchemaNotFound)
		}
		if _, err := there.SchemaByID(t.Context(), made.ID); !errors.Is(err, ErrSchemaNotFound) {
			t.Fatalf("replica there, after a barrier: got %v, want %v", err, ErrSchemaNotFound)
		}
	}
}
