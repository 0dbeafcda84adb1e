package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var (
	// ErrTruncated is the error of a Reader whose bytes end before a field does.
	ErrTruncated = errors.New("data ends before its last field")
	// ErrRange is the error of a Reader that met a number outside the range of the field.
	ErrRange = errors.New("number is out of the range of its field")
	// ErrTrailing is returned by End if bytes are left.
	ErrTrailing = errors.New("data has bytes after its last field")
)

// Reader consumes fields from a slice. After the first error all fields are zero. The zero Reader
// is empty. The slices that a Reader returns alias its input and have no spare capacity, so that an
// append to them copies.
type Reader struct {
	rest []byte
	err  error
}

// NewReader returns a Reader of b.
func NewReader(b []byte) Reader { return Reader{rest: b} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Len returns the number of bytes that are left; 0 after an error.
func (r *Reader) Len() int { return len(r.rest) }

// Fail sets the error, unless the Reader already has one. A decoder calls it when a field has
// a value that it does not accept.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// End returns the first error, or ErrTrailing with the number of bytes that are left.
func (r *Reader) End() error {
	if r.err == nil && len(r.rest) > 0 {
		return fmt.Errorf("%w: %d bytes", ErrTrailing, len(r.rest))
	}
	return r.err
}

// Rest consumes all bytes that are left.
func (r *Reader) Rest() []byte {
	b := r.rest
	r.rest = nil
	return b[:len(b):len(b)]
}

// Bytes consumes n bytes.
func (r *Reader) Bytes(n int) []byte {
	if uint(n) > uint(len(r.rest)) { //nolint:gosec // a negative n becomes larger than any length
		r.Fail(ErrTruncated)
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Skip consumes n bytes without returning them.
func (r *Reader) Skip(n int) {
	if uint(n) > uint(len(r.rest)) { //nolint:gosec // a negative n becomes larger than any length
		r.Fail(ErrTruncated)
		return
	}
	r.rest = r.rest[n:]
}

// Byte consumes one byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail(ErrTruncated)
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Uint16 consumes a big-endian number of two bytes.
func (r *Reader) Uint16() uint16 {
	if len(r.rest) < 2 {
		r.Fail(ErrTruncated)
		return 0
	}
	v := binary.BigEndian.Uint16(r.rest)
	r.rest = r.rest[2:]
	return v
}

// Uint32 consumes a big-endian number of four bytes.
func (r *Reader) Uint32() uint32 {
	if len(r.rest) < 4 {
		r.Fail(ErrTruncated)
		return 0
	}
	v := binary.BigEndian.Uint32(r.rest)
	r.rest = r.rest[4:]
	return v
}

// Uint64 consumes a big-endian number of eight bytes.
func (r *Reader) Uint64() uint64 {
	if len(r.rest) < 8 {
		r.Fail(ErrTruncated)
		return 0
	}
	v := binary.BigEndian.Uint64(r.rest)
	r.rest = r.rest[8:]
	return v
}

// Int8 consumes one byte as a signed number.
func (r *Reader) Int8() int8 { return int8(r.Byte()) } //nolint:gosec // two's complement

// Int16 consumes a signed big-endian number of two bytes.
func (r *Reader) Int16() int16 { return int16(r.Uint16()) } //nolint:gosec // two's complement

// Int32 consumes a signed big-endian number of four bytes.
func (r *Reader) Int32() int32 { return int32(r.Uint32()) } //nolint:gosec // two's complement

// Uvarint consumes an unsigned varint.
func (r *Reader) Uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // most numbers are small
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.failVarint(n)
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Varint consumes a signed varint (zigzag).
func (r *Reader) Varint() int64 {
	v := r.Uvarint()
	return int64(v>>1) ^ -int64(v&1) //nolint:gosec // the decoding of zigzag
}

// Uvarint32 consumes an unsigned varint of at most 32 bits in at most five bytes.
func (r *Reader) Uvarint32() uint32 {
	before := len(r.rest)
	v := r.Uvarint()
	if v > math.MaxUint32 || before-len(r.rest) > binary.MaxVarintLen32 && r.err == nil {
		r.Fail(ErrRange)
		return 0
	}
	return uint32(v)
}

// Varint32 consumes a signed varint of at most 32 bits in at most five bytes.
func (r *Reader) Varint32() int32 {
	v := r.Uvarint32()
	return int32(v>>1) ^ -int32(v&1) //nolint:gosec // the decoding of zigzag
}

// failVarint sets the error of a varint for which encoding/binary returned the length n.
func (r *Reader) failVarint(n int) {
	if n < 0 {
		r.Fail(ErrRange)
		return
	}
	r.Fail(ErrTruncated)
}

// Bool consumes an unsigned varint and reports whether it is not zero.
func (r *Reader) Bool() bool { return r.Uvarint() != 0 }

// Count consumes the number of elements that follow, an unsigned varint. Each element has at least
// one byte, so a count beyond the bytes that are left is an error and never an allocation.
func (r *Reader) Count() int {
	n := r.Uvarint()
	if n > uint64(len(r.rest)) {
		r.Fail(ErrTruncated)
		return 0
	}
	return int(n) //nolint:gosec // at most a length
}

// LengthPrefixed consumes bytes after their length, an unsigned varint.
func (r *Reader) LengthPrefixed() []byte {
	n := r.Uvarint()
	if n > uint64(len(r.rest)) {
		r.Fail(ErrTruncated)
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Text consumes a string after its length, an unsigned varint.
func (r *Reader) Text() string { return string(r.LengthPrefixed()) }

// Nullable consumes bytes after their length, a signed varint. The length -1 stands for nil; bytes
// of length 0 are not nil.
func (r *Reader) Nullable() []byte {
	n := r.Varint()
	switch {
	case n == -1:
		return nil
	case n < 0:
		r.Fail(ErrRange)
		return nil
	case n > int64(len(r.rest)):
		r.Fail(ErrTruncated)
		return nil
	case r.err != nil:
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}
