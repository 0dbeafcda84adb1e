package schemas

import (
	"fmt"

	"freshet/internal/base/wire"
	"freshet/internal/storage/engine"
)

// recordVersion is the first byte of every record and of the header of every
// snapshot. A higher version means that a newer server wrote the data.
const recordVersion = 1

// operation is the kind of a record. The numbers are stored.
type operation uint8

const (
	opRegister operation = iota + 1
	opSoftDelete
	opHardDelete
	opSetLevel
	opSetMode
	opReserve // ids up to this one are not assigned
)

// record is one change of the state: the whole effect of one operation of a
// client, or of one line of an import.
type record struct {
	op      operation
	at      int64 // epoch milliseconds
	subject string

	id int32 // opRegister, opReserve

	// opRegister
	version   int32
	fresh     bool // id is new: the record contains the content
	unchecked bool
	algorithm uint8
	typ       Type
	text      string
	refs      []Reference

	// opSoftDelete, opHardDelete
	versions []int32

	level Level // opSetLevel
	mode  Mode  // opSetMode
	purge bool  // opSetMode: hard-delete all soft-deleted versions
}

func (r *record) encode() []byte {
	b := make(wire.Writer, 0, 64+len(r.subject)+len(r.text))
	b = append(b, recordVersion, byte(r.op))
	b.Varint(r.at)
	b.Text(r.subject)
	switch r.op {
	case opRegister:
		b.Varint(int64(r.version))
		b.Varint(int64(r.id))
		b = append(b, flags(r.fresh, r.unchecked))
		if r.fresh {
			b = append(b, r.algorithm, byte(r.typ))
			b.Text(r.text)
			appendReferences(&b, r.refs)
		}
	case opSoftDelete, opHardDelete:
		b.Varint(int64(len(r.versions)))
		for _, v := range r.versions {
			b.Varint(int64(v))
		}
	case opSetLevel:
		b = append(b, byte(r.level))
	case opSetMode:
		b = append(b, byte(r.mode), flags(r.purge))
	case opReserve:
		b.Varint(int64(r.id))
	}
	return b
}

func decodeRecord(data []byte) (*record, error) {
	d := newDecoder(data)
	if v := d.Byte(); d.Err() == nil && v != recordVersion {
		return nil, newerFormat("record", v)
	}
	r := &record{op: operation(d.Byte())}
	r.at = d.Varint()
	r.subject = d.Text()
	switch r.op {
	case opRegister:
		r.version = d.Varint32()
		r.id = d.Varint32()
		f := d.Byte()
		r.fresh, r.unchecked = f&1 != 0, f&2 != 0
		if r.fresh {
			r.algorithm = d.Byte()
			r.typ = Type(d.Byte())
			r.text = d.Text()
			r.refs = d.references()
		}
	case opSoftDelete, opHardDelete:
		r.versions = make([]int32, d.count())
		for i := range r.versions {
			r.versions[i] = d.Varint32()
		}
	case opSetLevel:
		r.level = Level(d.Byte())
	case opSetMode:
		r.mode = Mode(d.Byte())
		r.purge = d.Byte()&1 != 0
	case opReserve:
		r.id = d.Varint32()
	default:
		if d.Err() == nil {
			return nil, fmt.Errorf("unknown operation %d", r.op)
		}
	}
	return r, d.End()
}

func flags(bits ...bool) byte {
	var b byte
	for i, bit := range bits {
		if bit {
			b |= 1 << i
		}
	}
	return b
}

func newerFormat(what string, version byte) error {
	return fmt.Errorf("%w: %s has format %d, this server supports %d", engine.ErrNewerFormat, what, version,
		recordVersion)
}
