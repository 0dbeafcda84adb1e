package protobuf

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"freshet.dev/client/schemas/builtin"
)

// compile compiles a text with protocompile alone, as a result to compare with
// that of this package.
func compile(t *testing.T, text string) *descriptorpb.FileDescriptorProto {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
		Accessor: func(path string) (io.ReadCloser, error) {
			if path == "x.proto" {
				return io.NopCloser(strings.NewReader(text)), nil
			}
			return builtin.Open(path)
		},
	})}
	files, err := compiler.Compile(context.Background(), "x.proto")
	if err != nil {
		t.Fatalf("compile: %v\n%s", err, text)
	}
	return protodesc.ToFileDescriptorProto(files[0])
}

// meaning returns a copy of a descriptor in which every list whose order has no
// meaning is sorted. Canonical text keeps the order of messages, enums and enum
// values; normalized text sorts the enum values.
func meaning(fd *descriptorpb.FileDescriptorProto, normalized bool) *descriptorpb.FileDescriptorProto {
	fd = proto.CloneOf(fd)
	public := map[string]bool{}
	for _, i := range fd.GetPublicDependency() {
		public[fd.GetDependency()[i]] = true
	}
	slices.Sort(fd.Dependency)
	fd.PublicDependency = nil
	for i, path := range fd.GetDependency() {
		if public[path] {
			fd.PublicDependency = append(fd.PublicDependency, int32(i))
		}
	}
	fd.Syntax = proto.String(cmp.Or(fd.GetSyntax(), "proto2"))
	sortExtensions(fd.GetExtension())
	for _, m := range fd.GetMessageType() {
		messageMeaning(m, normalized)
	}
	for _, e := range fd.GetEnumType() {
		enumMeaning(e, normalized)
	}
	for _, svc := range fd.GetService() {
		for _, m := range svc.GetMethod() {
			if proto.Size(m.GetOptions()) == 0 {
				m.Options = nil // braces without options
			}
		}
	}
	return fd
}

func sortExtensions(fields []*descriptorpb.FieldDescriptorProto) {
	slices.SortFunc(fields, func(a, b *descriptorpb.FieldDescriptorProto) int {
		return cmp.Or(cmp.Compare(a.GetExtendee(), b.GetExtendee()), cmp.Compare(a.GetNumber(), b.GetNumber()))
	})
}

func messageMeaning(m *descriptorpb.DescriptorProto, normalized bool) {
	names := map[int32]string{}
	for i, o := range m.GetOneofDecl() {
		names[int32(i)] = o.GetName()
	}
	slices.SortFunc(m.OneofDecl, func(a, b *descriptorpb.OneofDescriptorProto) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	at := map[string]int32{}
	for i, o := range m.GetOneofDecl() {
		at[o.GetName()] = int32(i)
	}
	for _, f := range m.GetField() {
		if f.OneofIndex != nil {
			f.OneofIndex = proto.Int32(at[names[f.GetOneofIndex()]])
		}
	}
	slices.SortFunc(m.Field, func(a, b *descriptorpb.FieldDescriptorProto) int {
		return cmp.Compare(a.GetNumber(), b.GetNumber())
	})
	slices.SortFunc(m.NestedType, func(a, b *descriptorpb.DescriptorProto) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	sortExtensions(m.GetExtension())
	if normalized {
		slices.Sort(m.ReservedName)
		slices.SortFunc(m.ReservedRange, func(a, b *descriptorpb.DescriptorProto_ReservedRange) int {
			return cmp.Compare(a.GetStart(), b.GetStart())
		})
		slices.SortFunc(m.ExtensionRange, func(a, b *descriptorpb.DescriptorProto_ExtensionRange) int {
			return cmp.Compare(a.GetStart(), b.GetStart())
		})
	}
	for _, nested := range m.GetNestedType() {
		messageMeaning(nested, normalized)
	}
	for _, e := range m.GetEnumType() {
		enumMeaning(e, normalized)
	}
}

func enumMeaning(e *descriptorpb.EnumDescriptorProto, normalized bool) {
	if !normalized {
		return
	}
	slices.SortFunc(e.Value, func(a, b *descriptorpb.EnumValueDescriptorProto) int {
		return cmp.Or(cmp.Compare(a.GetNumber(), b.GetNumber()), cmp.Compare(a.GetName(), b.GetName()))
	})
	slices.Sort(e.ReservedName)
	slices.SortFunc(e.ReservedRange, func(a, b *descriptorpb.EnumDescriptorProto_EnumReservedRange) int {
		return cmp.Compare(a.GetStart(), b.GetStart())
	})
}

// runs returns the number of rounds of a randomized test: normal, or the value of
// the environment variable FRESHET_RUNS, such as 20000 for a long test.
func runs(normal int) int {
	if n, err := strconv.Atoi(os.Getenv("FRESHET_RUNS")); err == nil {
		return n
	}
	return normal
}

func TestRandomSchemasSurvivePrinting(t *testing.T) {
	t.Parallel()
	for seed := range runs(40) {
		text := newGenerator(uint64(seed)).file()
		want := compile(t, text)
		s, err := Parse(text, nil)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		checkPrinted(t, want, s.Canonical(), (*Schema).Canonical, false)
		checkPrinted(t, want, s.Normalized(), (*Schema).Normalized, true)
		again, err := Parse(s.Canonical(), nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again.Normalized() != s.Normalized() {
			t.Fatalf("seed %d: normalized text depends on the layout:\n%s\n%s", seed, s.Normalized(),
				again.Normalized())
		}
		checkDescriptor(t, want)
		differences, err := Compare(s, again, nil)
		if err != nil || len(differences) > 0 {
			t.Fatalf("seed %d: a schema differs from itself: %v %v", seed, differences, err)
		}
	}
}

func checkPrinted(
	t *testing.T, want *descriptorpb.FileDescriptorProto, printed string, print func(*Schema) string, normalized bool,
) {
	t.Helper()
	got := compile(t, printed)
	if a, b := meaning(want, normalized), meaning(got, normalized); !bytes.Equal(encoded(t, a), encoded(t, b)) {
		t.Fatalf("printed text has another meaning:\n%s\n%s", printed, firstDifference(a, b))
	}
	again, err := Parse(printed, nil)
	if err != nil {
		t.Fatalf("printed text does not parse: %v\n%s", err, printed)
	}
	if twice := print(again); twice != printed {
		t.Fatalf("printing is not stable:\n%s\n---\n%s", printed, twice)
	}
}

// checkDescriptor parses a schema as a base64 descriptor: some clients register
// schemas in this form.
func checkDescriptor(t *testing.T, want *descriptorpb.FileDescriptorProto) {
	t.Helper()
	s, err := Parse(toBase64(t, want), nil)
	if err != nil {
		t.Fatalf("descriptor: %v", err)
	}
	checkPrinted(t, want, s.Canonical(), (*Schema).Canonical, false)
}

func toBase64(t *testing.T, m proto.Message) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(encoded(t, m))
}

// encoded encodes a message deterministically for comparisons. proto.Equal does
// not work here, because the custom options of two compilations have two types.
func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func firstDifference(a, b proto.Message) string {
	x := strings.Split(prototext.Format(a), "\n")
	y := strings.Split(prototext.Format(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "want " + strings.Join(x[max(0, i-4):min(len(x), i+4)], "\n") + "\ngot " +
				strings.Join(y[max(0, i-4):min(len(y), i+4)], "\n")
		}
	}
	return "one is longer"
}
