package kafkaapi

import (
	"errors"

	"freshet/internal/base/wire"
)

// The codec trusts the numbers in a frame: it counts down an announced number of tagged fields even
// when no bytes are left, and allocates arrays before it has seen their elements. A few bytes could
// make it run for seconds or allocate gigabytes. checkBody walks over a body before the codec does and
// rejects one that is malformed or too large.

// Limits of one request.
const (
	maxDecodedBytes = 64 << 20 // memory of the decoded arrays and texts, and of the rows of the response
	tagMemory       = 128      // memory of a decoded tagged field
	rowMemory       = 192      // memory of the row of a response that an array element leads to
)

var (
	errShape   = errors.New("body is malformed: a field exceeds its end")
	errDecoded = errors.New("body contains more elements than the limit allows")
	errTags    = errors.New("body contains tagged fields that only brokers send")
)

// bodyChecker walks over a body.
type bodyChecker struct {
	wire.Reader
	memoryLeft int // remaining memory for arrays, texts and rows
}

// checkBody checks a body and returns the memory that the codec will allocate for its arrays
// and texts, and that the rows of the response will take.
func checkBody(s *shape, body []byte) (memory int, err error) {
	r := bodyChecker{wire.NewReader(body), maxDecodedBytes}
	r.structure(s)
	switch err := r.Err(); {
	case errors.Is(err, errDecoded), errors.Is(err, errTags):
		return 0, err
	case err != nil:
		return 0, errShape
	case r.Len() > 0:
		return 0, errTrailingBytes
	}
	return maxDecodedBytes - r.memoryLeft, nil
}

func (r *bodyChecker) structure(s *shape) {
	for i := range s.fields {
		r.field(&s.fields[i], s.flexible)
	}
	if s.flexible {
		r.tagged(s)
	}
}

func (r *bodyChecker) field(f *shapeField, flexible bool) {
	switch f.kind {
	case fieldFixed:
		r.Skip(f.width)
	case fieldText:
		r.text(flexible)
	case fieldBytes:
		r.Skip(max(r.length(flexible, false), 0))
	case fieldNullableStruct:
		if r.Int8() >= 0 {
			r.structure(f.elem)
		}
	default:
		r.array(f, flexible)
	}
}

func (r *bodyChecker) array(f *shapeField, flexible bool) {
	n := r.length(flexible, false)
	if n > r.Len() {
		r.Fail(errShape) // an element has at least one byte
	}
	r.charge(max(n, 0), f.size+rowMemory)
	for i := 0; i < n && r.Err() == nil; i++ {
		switch f.kind {
		case fieldStructs:
			r.structure(f.elem)
		case fieldTexts:
			r.text(flexible)
		default:
			r.Skip(f.width)
		}
	}
}

// text skips a text, of which the codec makes a copy. Bytes remain in the frame.
func (r *bodyChecker) text(flexible bool) {
	n := max(r.length(flexible, true), 0)
	r.Skip(n)
	r.charge(n, 1)
}

// charge subtracts the memory of n elements.
func (r *bodyChecker) charge(n, size int) {
	if r.memoryLeft -= n * size; r.memoryLeft < 0 {
		r.Fail(errDecoded)
	}
}

// length reads the length of a field, -1 for null.
func (r *bodyChecker) length(flexible, short bool) int {
	switch {
	case flexible:
		return int(r.Uvarint32()) - 1
	case short:
		return int(r.Int16())
	}
	return int(r.Int32())
}

// tagged skips tagged fields.
func (r *bodyChecker) tagged(s *shape) {
	count := r.Uvarint32()
	if count > 0 && s.brokerTags {
		r.Fail(errTags)
	}
	for i := uint32(0); i < count && r.Err() == nil; i++ {
		r.Uvarint32() // the number of the tag
		size := r.Uvarint32()
		r.charge(1, tagMemory)
		r.Skip(int(size))
	}
}
