package schemas

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"freshet/internal/base/framing"
	"freshet/internal/base/wire"
)

// A snapshot is a stream of frames: a header, one frame per schema, one frame per
// subject, and an empty frame that marks the end of a complete snapshot. Each frame
// is a length and this number of bytes.

// maxFrame limits the memory that a damaged snapshot can allocate.
const maxFrame = 1 << 30

// Snapshot implements statemachine.State.
func (s *state) Snapshot(w io.Writer) error {
	out := bufio.NewWriterSize(w, 256<<10)
	var frame wire.Writer
	var err error
	write := func() bool {
		err = framing.WriteFrame(out, frame)
		return err == nil
	}
	frame = append(frame, recordVersion)
	frame.Varint(int64(s.lastID))
	frame = append(frame, byte(s.mode))
	frame.Uvarint(s.epoch)
	frame.Varint(int64(s.schemas.Len()))
	frame.Varint(int64(s.subjects.Len()))
	if !write() {
		return err
	}
	s.schemas.Scan(func(id int32, schema *Schema) bool {
		frame = append(frame[:0], schema.algorithm, byte(schema.Type), flags(schema.unchecked))
		frame.Varint(int64(id))
		appendReferences(&frame, schema.References)
		frame = append(frame, schema.Text()...)
		return write()
	})
	if err != nil {
		return err
	}
	s.subjects.Scan(func(name string, sub *subject) bool {
		frame = frame[:0]
		frame.Text(name)
		frame = append(frame, byte(sub.level))
		frame.Varint(int64(len(sub.versions)))
		for _, e := range sub.versions {
			frame.Varint(int64(e.number))
			frame.Varint(int64(e.schema.ID))
			frame.Varint(e.at)
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

// Restore implements statemachine.State.
func (s *state) Restore(r io.Reader) error {
	in := frameReader{framing.NewFrameReader(bufio.NewReaderSize(r, 256<<10), maxFrame)}
	d, err := in.next()
	if err != nil {
		return err
	}
	if v := d.Byte(); d.Err() == nil && v != recordVersion {
		return newerFormat("snapshot", v)
	}
	lastID := d.Varint32()
	s.mode = Mode(d.Byte())
	epoch := d.Uvarint()
	schemas, subjects := d.Varint(), d.Varint()
	if err := d.End(); err != nil {
		return err
	}
	if s.mode < ReadWrite || s.mode > Import {
		return fmt.Errorf("mode %d is unknown", s.mode)
	}
	for range schemas {
		if err := s.restoreSchema(in); err != nil {
			return fmt.Errorf("restoring a schema: %w", err)
		}
	}
	for range subjects {
		if err := s.restoreSubject(in); err != nil {
			return fmt.Errorf("restoring a subject: %w", err)
		}
	}
	if d, err = in.next(); err != nil || d.Len() != 0 {
		return errors.Join(errors.New("snapshot is incomplete: its last frame is not empty"), err)
	}
	s.lastID, s.epoch = max(s.lastID, lastID), epoch
	return nil
}

func (s *state) restoreSchema(in frameReader) error {
	d, err := in.next()
	if err != nil {
		return err
	}
	algorithm, typ, f := d.Byte(), Type(d.Byte()), d.Byte()
	id := d.Varint32()
	refs := d.references()
	if d.Err() != nil {
		return d.Err()
	}
	if id <= s.lastID || typ < Avro || typ > Protobuf {
		return fmt.Errorf("id %d of type %d is out of range or out of order", id, typ)
	}
	schema := newSchema(id, typ, string(d.Rest()), refs)
	schema.algorithm, schema.unchecked = algorithm, f&1 != 0
	s.bind(schema)
	return nil
}

func (s *state) restoreSubject(in frameReader) error {
	d, err := in.next()
	if err != nil {
		return err
	}
	sub := &subject{name: d.Text()}
	sub.level = Level(d.Byte())
	if last, _, ok := s.subjects.Max(); d.Err() == nil &&
		(ok && last >= sub.name || CheckSubject(sub.name) != nil || sub.level > AlwaysIncompatible) {
		return fmt.Errorf("subject %q with level %d is invalid or out of order", sub.name, sub.level)
	}
	if n := d.count(); n > 0 {
		sub.versions = make([]versionEntry, n)
	}
	for i := range sub.versions {
		number, id, at, f := d.Varint32(), d.Varint32(), d.Varint(), d.Byte()
		schema, ok := s.schemas.Get(id)
		if d.Err() == nil && !ok {
			return fmt.Errorf("version %d of subject %q has the unknown id %d", number, sub.name, id)
		}
		if d.Err() != nil {
			return d.Err()
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
	if err := d.End(); err != nil {
		return err
	}
	s.subjects.Set(sub.name, sub)
	s.countSubject(sub, 1)
	return nil
}

// frameReader reads the frames of a snapshot. A frame is valid until the next call
// of next.
type frameReader struct{ *framing.FrameReader }

func (f frameReader) next() (*decoder, error) {
	frame, err := f.Next()
	if err != nil {
		return nil, fmt.Errorf("reading a frame: %w", err)
	}
	return newDecoder(frame), nil
}
