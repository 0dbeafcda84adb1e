package kafkaapi

import (
	"encoding/binary"
	"errors"
	"math"
)

// The codec trusts the numbers in a frame: it counts down an announced number of tagged fields even
// when no bytes are left, and allocates arrays before it has seen their elements. A few bytes could
// make it run for seconds or allocate gigabytes. checkBody walks over a body before the codec does and
// rejects one that is malformed or too large.

// Limits of one request.
const (
	maxDecodedBytes = 64 << 20 // memory of the decoded arrays
	tagMemory       = 128      // memory of a decoded tagged field
)

var (
	errShape   = errors.New("body is malformed: a field exceeds its end")
	errDecoded = errors.New("body contains more elements than the limit allows")
	errTags    = errors.New("body contains tagged fields that only brokers send")
)

// bodyChecker walks over a body.
type bodyChecker struct {
	rest       []byte
	memoryLeft int // remaining memory for arrays
}

// checkBody checks a body and returns the memory that the codec will allocate for its arrays.
func checkBody(s *shape, body []byte) (memory int, err error) {
	r := bodyChecker{rest: body, memoryLeft: maxDecodedBytes}
	if err := r.structure(s); err != nil {
		return 0, err
	}
	if len(r.rest) > 0 {
		return 0, errTrailingBytes
	}
	return maxDecodedBytes - r.memoryLeft, nil
}

func (r *bodyChecker) structure(s *shape) error {
	for i := range s.fields {
		if err := r.field(&s.fields[i], s.flexible); err != nil {
			return err
		}
	}
	if s.flexible {
		return r.tagged(s)
	}
	return nil
}

func (r *bodyChecker) field(f *shapeField, flexible bool) error {
	switch f.kind {
	case fieldFixed:
		return r.skip(f.width)
	case fieldText, fieldBytes:
		n, err := r.length(flexible, f.kind == fieldText)
		return errors.Join(err, r.skip(max(n, 0)))
	case fieldNullableStruct:
		if len(r.rest) == 0 {
			return errShape
		}
		null := int8(r.rest[0]) < 0 //nolint:gosec // numbers on the wire are signed
		r.rest = r.rest[1:]
		if null {
			return nil
		}
		return r.structure(f.elem)
	}
	n, err := r.length(flexible, false)
	if err != nil {
		return err
	}
	if n > len(r.rest) {
		return errShape // an element has at least one byte
	}
	if r.memoryLeft -= max(n, 0) * f.size; r.memoryLeft < 0 {
		return errDecoded
	}
	for range n {
		var err error
		switch f.kind {
		case fieldStructs:
			err = r.structure(f.elem)
		case fieldTexts:
			err = r.field(&shapeField{kind: fieldText}, flexible)
		default:
			err = r.skip(f.width)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// length reads the length of a field, -1 for null.
func (r *bodyChecker) length(flexible, short bool) (int, error) {
	switch {
	case flexible:
		n, err := r.uvarint()
		return int(n) - 1, err
	case short:
		if len(r.rest) < 2 {
			return 0, errShape
		}
		n := int16(binary.BigEndian.Uint16(r.rest)) //nolint:gosec // numbers on the wire are signed
		r.rest = r.rest[2:]
		return int(n), nil
	}
	if len(r.rest) < 4 {
		return 0, errShape
	}
	n := int32(binary.BigEndian.Uint32(r.rest)) //nolint:gosec // numbers on the wire are signed
	r.rest = r.rest[4:]
	return int(n), nil
}

func (r *bodyChecker) uvarint() (uint32, error) {
	n, width := binary.Uvarint(r.rest)
	if width <= 0 || width > binary.MaxVarintLen32 || n > math.MaxUint32 {
		return 0, errShape
	}
	r.rest = r.rest[width:]
	return uint32(n), nil
}

func (r *bodyChecker) skip(n int) error {
	if n > len(r.rest) {
		return errShape
	}
	r.rest = r.rest[n:]
	return nil
}

// tagged skips tagged fields.
func (r *bodyChecker) tagged(s *shape) error {
	count, err := r.uvarint()
	if err != nil {
		return err
	}
	if count > 0 && s.brokerTags {
		return errTags
	}
	for range count {
		if _, err := r.uvarint(); err != nil {
			return err
		}
		size, err := r.uvarint()
		if err != nil {
			return err
		}
		if r.memoryLeft -= tagMemory; r.memoryLeft < 0 {
			return errDecoded
		}
		if err := r.skip(int(size)); err != nil {
			return err
		}
	}
	return nil
}
