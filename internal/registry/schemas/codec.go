package schemas

import (
	"encoding/binary"
	"errors"
	"math"
)

// The binary form of records and snapshots: numbers as varints, strings with
// their length before them. No field names, no reflection: replay is bound by
// the disk and not by decoding.

var errShort = errors.New("record is cut short")

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendInt(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

func appendReferences(b []byte, refs []Reference) []byte {
	b = appendInt(b, int64(len(refs)))
	for _, ref := range refs {
		b = appendString(b, ref.Name)
		b = appendString(b, ref.Subject)
		b = appendInt(b, int64(ref.Version))
	}
	return b
}

// decoder reads what the append functions wrote. After the first fault every
// read returns zero; err says what it was.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) int64() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) int32() int32 {
	n := d.int64()
	if n < math.MinInt32 || n > math.MaxInt32 {
		d.fail()
		return 0
	}
	return int32(n)
}

// count reads a length that at least as many bytes must follow.
func (d *decoder) count() int {
	n := d.int64()
	if n < 0 || n > int64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) string() string {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || n > uint64(len(d.b)-size) {
		d.fail()
		return ""
	}
	s := string(d.b[size : size+int(n)])
	d.b = d.b[size+int(n):]
	return s
}

func (d *decoder) references() []Reference {
	n := d.count()
	if n == 0 {
		return nil
	}
	refs := make([]Reference, n)
	for i := range refs {
		refs[i] = Reference{Name: d.string(), Subject: d.string(), Version: d.int32()}
	}
	return refs
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errShort
	}
	d.b = nil
}

// end returns the first fault, or that something was left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		return errors.New("record is longer than it should be")
	}
	return d.err
}
