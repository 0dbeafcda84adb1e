package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"freshet/internal/base/wire"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	var w wire.Writer
	w = append(w, 7)
	w = binary.BigEndian.AppendUint16(w, 0xfffe)
	w = binary.BigEndian.AppendUint32(w, 0xfffffffd)
	w = binary.BigEndian.AppendUint64(w, math.MaxUint64)
	w.Uvarint(300)
	w.Varint(math.MinInt64)
	w.Uvarint(math.MaxUint32)
	w.Varint(math.MinInt32)
	w.Bool(true)
	w.Bool(false)
	w.Text("ä")
	w.Text("")
	w.Varint(-1) // the length of a nil value
	w.Varint(0)
	w.Varint(1)
	w = append(w, 'x')
	w.Uvarint(2)
	w = append(w, "ab"...)

	r := wire.NewReader(w)
	equal(t, "Byte", r.Byte(), 7)
	equal(t, "Int16", r.Int16(), -2)
	equal(t, "Int32", r.Int32(), -3)
	equal(t, "Uint64", r.Uint64(), math.MaxUint64)
	equal(t, "Uvarint", r.Uvarint(), 300)
	equal(t, "Varint", r.Varint(), math.MinInt64)
	equal(t, "Uvarint32", r.Uvarint32(), math.MaxUint32)
	equal(t, "Varint32", r.Varint32(), math.MinInt32)
	equal(t, "Bool", r.Bool(), true)
	equal(t, "Bool", r.Bool(), false)
	equal(t, "Text", r.Text(), "ä")
	equal(t, "LengthPrefixed", len(r.LengthPrefixed()), 0)
	equal(t, "Nullable(nil) is nil", r.Nullable() == nil, true)
	equal(t, "Nullable of length 0 is nil", r.Nullable() == nil, false)
	equal(t, "Nullable", string(r.Nullable()), "x")
	equal(t, "Count", r.Count(), 2)
	equal(t, "Len", r.Len(), 2)
	if err := r.End(); !errors.Is(err, wire.ErrTrailing) {
		t.Errorf("End with two bytes left = %v", err)
	}
	equal(t, "Rest", string(r.Rest()), "ab")
	if err := r.End(); err != nil {
		t.Errorf("End = %v", err)
	}
}

// TestErrors reads one field from bytes that do not contain it.
func TestErrors(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte{0xff}, 11)
	uvarint32 := func(r *wire.Reader) { r.Uvarint32() }
	varint32 := func(r *wire.Reader) { r.Varint32() }
	for _, c := range []struct {
		name string
		in   []byte
		read func(*wire.Reader)
		want error
	}{
		{"Byte", nil, func(r *wire.Reader) { r.Byte() }, wire.ErrTruncated},
		{"Uint16", []byte{1}, func(r *wire.Reader) { r.Uint16() }, wire.ErrTruncated},
		{"Uint32", []byte{1, 2, 3}, func(r *wire.Reader) { r.Uint32() }, wire.ErrTruncated},
		{"Uint64", make([]byte, 7), func(r *wire.Reader) { r.Uint64() }, wire.ErrTruncated},
		{"Bytes", []byte{1}, func(r *wire.Reader) { r.Bytes(2) }, wire.ErrTruncated},
		{"Bytes of a negative length", []byte{1}, func(r *wire.Reader) { r.Bytes(-1) }, wire.ErrTruncated},
		{"Skip", []byte{1}, func(r *wire.Reader) { r.Skip(2) }, wire.ErrTruncated},
		{"Skip of a negative length", []byte{1}, func(r *wire.Reader) { r.Skip(-1) }, wire.ErrTruncated},
		{"Uvarint of nothing", nil, func(r *wire.Reader) { r.Uvarint() }, wire.ErrTruncated},
		{"Uvarint without end", []byte{0x80}, func(r *wire.Reader) { r.Uvarint() }, wire.ErrTruncated},
		{"Uvarint of 65 bits", long, func(r *wire.Reader) { r.Uvarint() }, wire.ErrRange},
		{"Varint of 65 bits", long, func(r *wire.Reader) { r.Varint() }, wire.ErrRange},
		{"Uvarint32 of 33 bits", binary.AppendUvarint(nil, 1<<32), uvarint32, wire.ErrRange},
		{"Uvarint32 of six bytes", []byte{0x81, 0x80, 0x80, 0x80, 0x80, 0}, uvarint32, wire.ErrRange},
		{"Uvarint32 without end", []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80}, uvarint32, wire.ErrTruncated},
		{"Varint32 of 33 bits", binary.AppendVarint(nil, math.MaxInt32+1), varint32, wire.ErrRange},
		{"Count", []byte{2, 0}, func(r *wire.Reader) { r.Count() }, wire.ErrTruncated},
		{"LengthPrefixed", []byte{2, 0}, func(r *wire.Reader) { r.LengthPrefixed() }, wire.ErrTruncated},
		{"Text", binary.AppendUvarint(nil, math.MaxUint64), func(r *wire.Reader) { _ = r.Text() }, wire.ErrTruncated},
		{"Nullable", binary.AppendVarint(nil, 1), func(r *wire.Reader) { r.Nullable() }, wire.ErrTruncated},
		{"Nullable of length -2", binary.AppendVarint(nil, -2), func(r *wire.Reader) { r.Nullable() }, wire.ErrRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := wire.NewReader(c.in)
			c.read(&r)
			if !errors.Is(r.Err(), c.want) || !errors.Is(r.End(), c.want) {
				t.Errorf("error %v, want %v", r.Err(), c.want)
			}
			r.Fail(errors.New("a later error"))
			if r.Len() != 0 || r.Uvarint() != 0 || r.Nullable() != nil || r.Rest() != nil ||
				!errors.Is(r.Err(), c.want) {
				t.Errorf("fields after the error are not zero, or it changed to %v", r.Err())
			}
		})
	}
}

// TestAliasesWithoutCapacity appends to a field, which must not change the next one.
func TestAliasesWithoutCapacity(t *testing.T) {
	t.Parallel()
	in := []byte{1, 'a', 2, 'b', 'c'}
	r := wire.NewReader(in)
	field := r.LengthPrefixed()
	equal(t, "alias", &field[0] == &in[1], true)
	_ = append(field, 'x')
	equal(t, "next field", r.Text(), "bc")
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for shift := range 64 {
		for _, v := range []uint64{1 << shift, 1<<shift - 1, 1<<shift + 1} {
			equal(t, "UvarintSize", wire.UvarintSize(v), len(binary.AppendUvarint(nil, v)))
			for _, signed := range []int64{int64(v), -int64(v)} {
				equal(t, "VarintSize", wire.VarintSize(signed), len(binary.AppendVarint(nil, signed)))
			}
		}
	}
}

// FuzzReader compares varints with encoding/binary and reads fields of all kinds: no input panics
// or returns more bytes than it has.
func FuzzReader(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4})
	f.Add(bytes.Repeat([]byte{0x80}, 12))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := wire.NewReader(in)
		want, n := binary.Varint(in)
		if got := r.Varint(); n > 0 && (got != want || r.Len() != len(in)-n) || (n <= 0) != (r.Err() != nil) {
			t.Fatalf("Varint(%x) = %d and %v, want %d of %d bytes", in, got, r.Err(), want, n)
		}
		r = wire.NewReader(in)
		size := 0
		for r.Err() == nil && r.Len() > 0 {
			size += len(r.LengthPrefixed()) + len(r.Nullable()) + len(r.Bytes(int(r.Varint32())))
			r.Count()
		}
		if size > len(in) {
			t.Fatalf("%d bytes from %d", size, len(in))
		}
	})
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Benchmarks: the fields of a small record.

func BenchmarkReader(b *testing.B) {
	var w wire.Writer
	w.Uvarint(5)
	w.Varint(1_700_000_000_000)
	w = append(binary.AppendVarint(w, 3), "key"...)
	w = append(binary.AppendVarint(w, 5), "value"...)
	w.Text("topic")
	b.ReportAllocs()
	for b.Loop() {
		r := wire.NewReader(w)
		r.Uvarint()
		r.Varint()
		r.Nullable()
		r.Nullable()
		r.LengthPrefixed()
		if r.End() != nil {
			b.Fatal(r.Err())
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	w := make(wire.Writer, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		w = w[:0]
		w.Uvarint(5)
		w.Varint(1_700_000_000_000)
		w.Varint(3)
		w.Varint(5)
		w.Text("topic")
	}
}
