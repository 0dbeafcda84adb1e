package schemas

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A snapshot is a stream of frames: a header, one frame per schema, one frame per
// subject, and an empty frame that marks the end of a complete snapshot. Each frame
// is a length and this number of bytes.

// maxFrame limits the memory that a damaged snapshot can allocate.
const maxFrame = 1 << 30

// Snapshot implements statemachine.State.
func (s *state) Snapshot(w io.Writer) error {
	out := bufio.NewWriterSize(w, 256<<10)
	var frame, length []byte
	var err error
	write := func() bool {
		length = binary.AppendUvarint(length[:0], uint64(len(frame)))
		if _, err = out.Write(length); err == nil {
			_, err = out.Write(frame)
		}
		return err == nil
	}
	frame = append(frame, recordVersion)
	frame = appendInt(frame, int64(s.lastID))
	frame = append(frame, byte(s.mode))
	frame = binary.AppendUvarint(frame, s.epoch)
	frame = appendInt(frame, int64(s.schemas.Len()))
	frame = appendInt(frame, int64(s.subjects.Len()))
	if !write() {
		return err
	}
	s.schemas.Scan(func(id int32, schema *Schema) bool {
		frame = append(frame[:0], schema.algorithm, byte(schema.Type), flags(schema.unchecked))
		frame = appendInt(frame, int64(id))
		frame = appendReferences(frame, schema.References)
		frame = append(frame, schema.Text()...)
		return write()
	})
	if err != nil {
		return err
	}
	s.subjects.Scan(func(name string, sub *subject) bool {
		frame = appendString(frame[:0], name)
		frame = append(frame, byte(sub.level))
		frame = appendInt(frame, int64(len(sub.versions)))
		for _, e := range sub.versions {
			frame = appendInt(frame, int64(e.number))
			frame = appendInt(frame, int64(e.schema.ID))
			frame = appendInt(frame, e.at)
			frame = append(frame, flags(e.deleted))
		}
		return write()
	})
	if err != nil {
		return err
	}
	frame = frame[:0]
	if !write() {
		return err
	}
	return out.Flush()
}

// restore reads a snapshot.
func restore(r io.Reader) (*state, error) {
	in := &frameReader{r: bufio.NewReaderSize(r, 256<<10)}
	s := newState()
	d, err := in.next()
	if err != nil {
		return nil, err
	}
	if v := d.byte(); d.err == nil && v != recordVersion {
		return nil, newerFormat("snapshot", v)
	}
	lastID := d.int32()
	s.mode = Mode(d.byte())
	epoch, size := binary.Uvarint(d.b)
	if size <= 0 {
		return nil, errTruncated
	}
	d.b = d.b[size:]
	schemas, subjects := d.int64(), d.int64()
	if err := d.end(); err != nil {
		return nil, err
	}
	if s.mode < ReadWrite || s.mode > Import {
		return nil, fmt.Errorf("mode %d is unknown", s.mode)
	}
	for range schemas {
		if err := s.restoreSchema(in); err != nil {
			return nil, fmt.Errorf("restoring a schema: %w", err)
		}
	}
	for range subjects {
		if err := s.restoreSubject(in); err != nil {
			return nil, fmt.Errorf("restoring a subject: %w", err)
		}
	}
	if d, err = in.next(); err != nil || len(d.b) != 0 {
		return nil, errors.Join(errors.New("snapshot is incomplete: its last frame is not empty"), err)
	}
	s.lastID, s.epoch = max(s.lastID, lastID), epoch
	return s, nil
}

func (s *state) restoreSchema(in *frameReader) error {
	d, err := in.next()
	if err != nil {
		return err
	}
	algorithm, typ, f := d.byte(), Type(d.byte()), d.byte()
	id := d.int32()
	refs := d.references()
	if d.err != nil {
		return d.err
	}
	if id <= s.lastID || typ < Avro || typ > Protobuf {
		return fmt.Errorf("id %d of type %d is out of range or out of order", id, typ)
	}
	schema := newSchema(id, typ, string(d.b), refs)
	schema.algorithm, schema.unchecked = algorithm, f&1 != 0
	s.bind(schema)
	return nil
}

func (s *state) restoreSubject(in *frameReader) error {
	d, err := in.next()
	if err != nil {
		return err
	}
	sub := &subject{name: d.string()}
	sub.level = Level(d.byte())
	if last, _, ok := s.subjects.Max(); d.err == nil &&
		(ok && last >= sub.name || CheckSubject(sub.name) != nil || sub.level > AlwaysIncompatible) {
		return fmt.Errorf("subject %q with level %d is invalid or out of order", sub.name, sub.level)
	}
	if n := d.count(); n > 0 {
		sub.versions = make([]versionEntry, n)
	}
	for i := range sub.versions {
		number, id, at, f := d.int32(), d.int32(), d.int64(), d.byte()
		schema, ok := s.schemas.Get(id)
		if d.err == nil && !ok {
			return fmt.Errorf("version %d of subject %q has the unknown id %d", number, sub.name, id)
		}
		if d.err != nil {
			return d.err
		}
		e := versionEntry{schema: schema, number: number, at: at, deleted: f&1 != 0}
		if i > 0 && sub.versions[i-1].number >= number {
			return fmt.Errorf("versions of subject %q are out of order", sub.name)
		}
		if !e.deleted {
			sub.active++
		}
		sub.versions[i] = e
		s.countVersion(e, 1)
		s.usages.Set(usage{id: id, subject: sub.name, version: number, deleted: e.deleted})
	}
	if err := d.end(); err != nil {
		return err
	}
	s.subjects.Set(sub.name, sub)
	s.countSubject(sub, 1)
	return nil
}

// frameReader reads the frames of a snapshot. A frame is valid until the next call
// of next.
type frameReader struct {
	r   *bufio.Reader
	buf []byte
}

func (f *frameReader) next() (*decoder, error) {
	n, err := binary.ReadUvarint(f.r)
	if err != nil {
		return nil, fmt.Errorf("reading a frame: %w", err)
	}
	if n > maxFrame {
		return nil, fmt.Errorf("frame of %d bytes is out of range", n)
	}
	if uint64(cap(f.buf)) < n {
		f.buf = make([]byte, n)
	}
	f.buf = f.buf[:n]
	if _, err := io.ReadFull(f.r, f.buf); err != nil {
		return nil, fmt.Errorf("reading a frame: %w", err)
	}
	return &decoder{b: f.buf}, nil
}
