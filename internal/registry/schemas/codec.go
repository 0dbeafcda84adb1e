package schemas

import (
	"encoding/binary"
	"errors"
	"math"
)

// The binary format of records and snapshots has numbers as varints, and strings
// after their length. It has no field names and needs no reflection, so that the
// disk limits the speed of a replay, and not decoding.

var errTruncated = errors.New("record is truncated")

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

// decoder reads the format of the append functions. After the first error, which
// it keeps in err, every read returns zero.
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

// count reads the length of a list. At least one byte per element must follow.
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
		d.err = errTruncated
	}
	d.b = nil
}

// end returns the first error, or an error if bytes remain.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		return errors.New("record has trailing bytes")
	}
	return d.err
}
