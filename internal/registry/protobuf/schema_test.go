package protobuf

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	dep := mustParse(t, `syntax = "proto3"; package d; message D { int32 a = 1; }`)
	s := mustParse(t, `syntax = "proto3"; import "d.proto"; message M { d.D d = 1 [(x) = 1]; }`, "d.proto", dep)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_ = s.Canonical()
			_ = s.Normalized()
			if d, err := Compare(s, s, nil); err != nil || len(d) > 0 {
				t.Error(d, err)
			}
			_, err := Parse(fmt.Sprintf(`syntax = "proto3"; import "m.proto"; message N%d { M m = 1; }`, i),
				references("m.proto", s))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// The schema is one message of five megabytes, once on one line and once on many.
func TestLargeSchema(t *testing.T) {
	if testing.Short() {
		t.Skip("the schema is large")
	}
	t.Parallel()
	size := 5 << 20 / 20
	if runs(0) > 0 {
		size *= 20
	}
	for name, end := range map[string]string{"one line": " ", "many lines": "\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			b.WriteString("syntax = \"proto3\"; message M {")
			for i := 1; b.Len() < size; i++ {
				fmt.Fprintf(&b, "repeated M field_%d = %d;%s", i, 20000+i, end)
			}
			s := mustParse(t, b.String()+"}")
			if d, err := Compare(s, s, nil); err != nil || len(d) > 0 {
				t.Error(d, err)
			}
			if len(s.Normalized()) < size/2 {
				t.Error("fields are missing")
			}
		})
	}
}
