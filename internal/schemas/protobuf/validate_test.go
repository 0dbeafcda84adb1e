package protobuf

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"freshet/internal/errs"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `syntax = "proto2"; package shop; import "google/protobuf/timestamp.proto";
message Order { required string id = 1; optional google.protobuf.Timestamp at = 2; repeated Line lines = 3; message Line { optional int32 n = 1; } }
message Other { optional string s = 1; }`)
	at, err := proto.Marshal(&timestamppb.Timestamp{Seconds: 5})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		message string
		data    string
		want    error
	}{
		"first message":        {"", "\x0a\x01x", nil},
		"by full name":         {"shop.Order", "\x0a\x01x", nil},
		"by short name":        {"Order", "\x0a\x01x", nil},
		"nested":               {"shop.Order.Line", "\x08\x07", nil},
		"nested, short":        {"Order.Line", "\x08\x07", nil},
		"imported field":       {"", "\x0a\x01x\x12" + string(rune(len(at))) + string(at), nil},
		"unknown fields":       {"", "\x0a\x01x\x78\x01", nil},
		"nothing at all":       {"Other", "", nil},
		"required missing":     {"", "", ErrRecord},
		"truncated":            {"", "\x0a\x05x", ErrRecord},
		"garbage":              {"", "\xff\xff\xff\xff", ErrRecord},
		"wrong nested message": {"", "\x0a\x01x\x1a\x02\x08", ErrRecord},
		"no such message":      {"Nope", "", ErrNoMessage},
		"imported by name":     {"google.protobuf.Timestamp", "", ErrNoMessage},
		"a field, not message": {"shop.Order.id", "", ErrNoMessage},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := s.Validate(tc.message, []byte(tc.data))
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err != nil && errs.KindOf(err) == errs.Internal {
				t.Errorf("%v has no kind", err)
			}
		})
	}
}

func TestValidateRefusesBadUTF8(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `syntax = "proto3"; message M { string s = 1; bytes b = 2; }`)
	if err := s.Validate("", []byte("\x0a\x01\xff")); !errors.Is(err, ErrRecord) {
		t.Errorf("string: %v", err)
	}
	if err := s.Validate("", []byte("\x12\x01\xff")); err != nil {
		t.Errorf("bytes: %v", err)
	}
}

func TestMessageByIndexes(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `syntax = "proto3"; package p;
message A { map<string, B> m = 1; message B { message C {} } message D {} }
enum E { X = 0; }
message F {}`)
	tests := []struct {
		indexes []int
		want    string
	}{
		{nil, "p.A"},
		{[]int{}, "p.A"},
		{[]int{0}, "p.A"},
		{[]int{1}, "p.F"},
		{[]int{0, 0}, "p.A.MEntry"},
		{[]int{0, 1}, "p.A.B"},
		{[]int{0, 1, 0}, "p.A.B.C"},
		{[]int{0, 2}, "p.A.D"},
		{[]int{2}, ""},
		{[]int{-1}, ""},
		{[]int{0, 3}, ""},
		{[]int{1, 0}, ""},
	}
	for _, tc := range tests {
		got, err := s.MessageByIndexes(tc.indexes)
		if got != tc.want || (err != nil) != (tc.want == "") {
			t.Errorf("MessageByIndexes(%v) = %q, %v; want %q", tc.indexes, got, err, tc.want)
		}
		if err != nil && !errors.Is(err, ErrNoMessage) {
			t.Errorf("%v is not ErrNoMessage", err)
		}
	}
	enums := mustParse(t, `syntax = "proto3"; enum E { X = 0; }`)
	if _, err := enums.MessageByIndexes(nil); !errors.Is(err, ErrNoMessage) {
		t.Errorf("a file without messages: %v", err)
	}
}

func TestSchemaIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	dep := mustParse(t, `syntax = "proto3"; package d; message D { int32 a = 1; }`)
	s := mustParse(t, `syntax = "proto3"; import "d.proto"; message M { d.D d = 1 [(x) = 1]; }`, "d.proto", dep)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_ = s.Canonical()
			_ = s.Normalized()
			if err := s.Validate("", []byte{}); err != nil {
				t.Error(err)
			}
			if d, err := Compare(s, s); err != nil || len(d) > 0 {
				t.Error(d, err)
			}
			_, err := Parse(fmt.Sprintf(`syntax = "proto3"; import "m.proto"; message N%d { M m = 1; }`, i), references("m.proto", s))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Five megabytes in one message, on one line and on many.
func TestLargeSchema(t *testing.T) {
	if testing.Short() {
		t.Skip("large")
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
			if d, err := Compare(s, s); err != nil || len(d) > 0 {
				t.Error(d, err)
			}
			if len(s.Normalized()) < size/2 {
				t.Error("fields are missing")
			}
		})
	}
}
