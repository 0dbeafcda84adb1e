package avro

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// DecodeDatum reports whether data is exactly one datum of the schema in Avro's binary
// encoding. It decodes without building values: its memory does not depend on the lengths
// in the data, and its work is bounded by the size of the data.
func (s *Schema) DecodeDatum(data []byte) error {
	d := decoder{data: data, budget: datumWorkBase + datumWorkByte*len(data)}
	if err := d.datum(s.root); err != nil {
		return err
	}
	if d.pos < len(data) {
		return invalid("%d bytes follow the datum", len(data)-d.pos)
	}
	return nil
}

// measure determines which of the new types take no bytes in the binary encoding, and which
// fields of the others take bytes. The decoder skips types without bytes, so that its work
// is bounded by the size of the data.
func measure(types []*node) {
	m := measurer{}
	for _, t := range types {
		m[t] = false
	}
	for _, t := range types {
		m.empty(t)
	}
}

// measurer has the types that are not measured yet. The value is true while a type is being
// measured.
type measurer map[*node]bool

// empty reports whether a type takes no bytes. A record that requires itself is infinite,
// so it is not empty.
func (m measurer) empty(n *node) bool {
	busy, open := m[n]
	if busy {
		return false
	}
	if open && n.kind == kindRecord {
		m[n] = true
		for _, f := range n.named.fields {
			if !m.empty(f.node) {
				n.named.sizedFields = append(n.named.sizedFields, f.node)
			}
		}
		delete(m, n)
	}
	return n.empty()
}

// empty reports whether a type that has been measured takes no bytes.
func (n *node) empty() bool {
	switch n.kind {
	case kindNull:
		return true
	case kindFixed:
		return n.named.size == 0
	case kindRecord:
		return len(n.named.sizedFields) == 0
	}
	return false
}

// decoder validates a datum in the binary encoding.
type decoder struct {
	data   []byte
	pos    int
	depth  int
	budget int
	lax    bool // skip strings without checking that they are UTF-8
}

// datum skips one datum of type n.
func (d *decoder) datum(n *node) error {
	if d.budget--; d.budget < 0 {
		return invalid("datum is too costly to decode")
	}
	switch n.kind {
	case kindNull:
		return nil
	case kindBoolean:
		return d.boolean()
	case kindInt:
		v, err := d.long()
		if err == nil && (v < math.MinInt32 || v > math.MaxInt32) {
			return d.fail("int has more than 32 bits")
		}
		return err
	case kindLong:
		_, err := d.long()
		return err
	case kindFloat:
		return d.skip(4)
	case kindDouble:
		return d.skip(8)
	case kindBytes:
		_, err := d.bytes()
		return err
	case kindString:
		return d.string()
	case kindFixed:
		return d.skip(int64(n.named.size))
	case kindEnum:
		_, err := d.index(len(n.named.symbols), "symbols of an enum")
		return err
	}
	return d.nested(n)
}

// nested skips a datum that contains others.
func (d *decoder) nested(n *node) error {
	if d.depth++; d.depth > maxDatumDepth {
		return d.fail("datum is nested more than %d levels deep", maxDatumDepth)
	}
	err := d.parts(n)
	d.depth--
	return err
}

func (d *decoder) parts(n *node) error {
	switch n.kind {
	case kindUnion:
		i, err := d.index(len(n.branches), "branches of a union")
		if err != nil {
			return err
		}
		return d.datum(n.branches[i])
	case kindRecord:
		for _, f := range n.named.sizedFields {
			if err := d.datum(f); err != nil {
				return err
			}
		}
		return nil
	}
	return d.blocks(n)
}

// blocks skips the blocks of an array or a map.
func (d *decoder) blocks(n *node) error {
	for {
		count, err := d.long()
		if err != nil || count == 0 {
			return err
		}
		end := -1
		if count < 0 {
			// A negative count is followed by the size of the block in bytes.
			if count = -count; count < 0 {
				return d.fail("block has too many items")
			}
			size, err := d.length()
			if err != nil {
				return err
			}
			end = d.pos + size
		}
		if err := d.items(n, count); err != nil {
			return err
		}
		if end >= 0 && d.pos != end {
			return d.fail("block has another size than it declares")
		}
	}
}

// items skips the items of one block.
func (d *decoder) items(n *node, count int64) error {
	if n.kind == kindArray && n.elem.empty() {
		return nil
	}
	if count > int64(len(d.data)-d.pos) {
		return d.fail("block of %d items is longer than the datum", count)
	}
	for range count {
		if n.kind == kindMap {
			if err := d.string(); err != nil {
				return err
			}
		}
		if err := d.datum(n.elem); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) fail(format string, args ...any) error {
	return invalid("at byte %d: %w", d.pos, invalid(format, args...))
}

// long reads a variable-length zig-zag integer.
func (d *decoder) long() (int64, error) {
	v, n := binary.Varint(d.data[d.pos:])
	switch {
	case n == 0:
		return 0, d.fail("datum ends inside a number")
	case n < 0:
		return 0, d.fail("number has more than 64 bits")
	}
	d.pos += n
	return v, nil
}

// index reads the position of a symbol or branch.
func (d *decoder) index(count int, of string) (int, error) {
	i, err := d.long()
	if err != nil {
		return 0, err
	}
	if i < 0 || i >= int64(count) {
		return 0, d.fail("%d is not among the %d %s", i, count, of)
	}
	return int(i), nil
}

// length reads a length and checks that the rest of the data is at least that long.
func (d *decoder) length() (int, error) {
	n, err := d.long()
	if err != nil {
		return 0, err
	}
	if n < 0 || n > int64(len(d.data)-d.pos) {
		return 0, d.fail("length %d exceeds the remaining %d bytes", n, len(d.data)-d.pos)
	}
	return int(n), nil
}

func (d *decoder) skip(n int64) error {
	if n > int64(len(d.data)-d.pos) {
		return d.fail("datum ends inside a value of %d bytes", n)
	}
	d.pos += int(n)
	return nil
}

func (d *decoder) bytes() ([]byte, error) {
	n, err := d.length()
	if err != nil {
		return nil, err
	}
	d.pos += n
	return d.data[d.pos-n : d.pos], nil
}

func (d *decoder) string() error {
	b, err := d.bytes()
	if err == nil && !d.lax && !utf8.Valid(b) {
		return d.fail("string is not UTF-8")
	}
	return err
}

func (d *decoder) boolean() error {
	if err := d.skip(1); err != nil {
		return err
	}
	if d.data[d.pos-1] > 1 {
		return d.fail("boolean is neither 0 nor 1")
	}
	return nil
}
