package messaging

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"time"

	"freshet/internal/base/unpacking"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
)

// visit reads a stored value, and reports whether the slice continues.
func (s *Search) visit(ctx context.Context, part *searchPart, v *engine.StoredValue) (more bool, err error) {
	if v.First >= part.end {
		part.next = part.end
		return false, nil
	}
	part.published = v.PublishTime
	if v.Run.Count == 0 {
		s.single(part, &v.Record)
	} else if err := s.batch(ctx, part, v); err != nil {
		return false, err
	}
	return !s.full && part.next < part.end && time.Now().Before(s.deadline), nil
}

// single evaluates a message that is stored individually.
func (s *Search) single(part *searchPart, r *engine.Record) {
	part.next = r.ID.Entry + 1
	received := s.searcher.consumer.received(s.target.topic, r)
	s.progress.Scanned++
	matched, err := s.matcher.Match(received.filterMessage())
	if err != nil {
		s.progress.fail(err)
	} else if matched {
		s.keep(&received)
	}
}

// batch evaluates the records of a batch. The batch is decompressed once, and its records are not
// copied unless they match.
func (s *Search) batch(ctx context.Context, part *searchPart, v *engine.StoredValue) error {
	before, found, held, next := s.progress, len(s.found), s.held, part.next
	read := func(grow records.Grow) error {
		// The pass may be repeated when memory was short.
		s.progress, s.found, s.held, s.full, part.next = before, s.found[:found], held, false, next
		return s.records(part, v, grow)
	}
	if !compressed(v.Run.Body) {
		return read(nil)
	}
	s.searcher.unpacking.CountOpened()
	return s.searcher.unpacking.Do(ctx, unpackBytes, func(r *unpacking.Reservation) error { return read(r.Grow) })
}

func (s *Search) records(part *searchPart, v *engine.StoredValue, grow records.Grow) error {
	reader, err := records.NewReader(v.Run.Body)
	if err != nil {
		return s.unreadable(part, v, err)
	}
	defer reader.Close()
	var m filter.Message
	for {
		_, r, err := reader.Next(grow)
		switch {
		case unpacking.IsShort(err):
			return err
		case isEOF(err):
			part.next = v.First + uint64(v.Run.Count) //nolint:gosec // at least 1
			return nil
		case err != nil:
			return s.unreadable(part, v, err)
		}
		entry := v.First + uint64(r.Delta) //nolint:gosec // not negative
		if entry < part.next {
			continue
		}
		if entry >= part.end {
			part.next = part.end
			return nil
		}
		part.next = entry + 1
		s.record(part, v, reader.Head(), r, &m)
		if s.full {
			return nil
		}
	}
}

// record evaluates a record of a batch.
func (s *Search) record(part *searchPart, v *engine.StoredValue, head *records.BatchHeader, r *records.Record,
	m *filter.Message,
) {
	headers := m.Headers[:0]
	for i := range r.Headers {
		h := &r.Headers[i]
		headers = append(headers, filter.Header{Name: h.Key, Value: h.Value, Null: h.Value == nil})
	}
	*m = filter.Message{
		Payload: r.Value, NullPayload: r.Value == nil, Key: r.Key, Headers: headers,
		PublishTime: v.PublishTime, EventTime: max(r.Time, 0), Partition: part.index, Offset: part.next - 1,
		SchemaVersion: NoSchema,
	}
	s.progress.Scanned++
	matched, err := s.matcher.Match(m)
	if err != nil {
		s.progress.fail(err)
		return
	}
	if !matched {
		return
	}
	received := s.searcher.consumer.received(s.target.topic, &engine.Record{
		Message: *message(head, r), PublishTime: v.PublishTime, Run: v.Run.Format,
		ID: engine.MessageID{Topic: s.target.id, Partition: part.index, Entry: part.next - 1},
	})
	s.keep(&received)
}

// unreadable counts a batch that cannot be decoded as one failure, and continues after it.
func (s *Search) unreadable(part *searchPart, v *engine.StoredValue, err error) error {
	s.progress.fail(err)
	part.next = v.First + uint64(v.Run.Count) //nolint:gosec // at least 1
	return nil
}

// keep adds a match to those of the slice.
func (s *Search) keep(r *Received) {
	s.progress.Matched++
	s.found = append(s.found, *r)
	s.held += len(r.Payload) + len(r.Key)
	for i := range r.Properties {
		s.held += len(r.Properties[i].Key) + len(r.Properties[i].Value)
	}
	s.full = s.limited() || s.held >= searchHeld || len(s.found) >= deliveryBatch
}

// filterMessage returns what an expression reads of the message.
func (r *Received) filterMessage() *filter.Message {
	m := &filter.Message{
		Payload: r.Payload, NullPayload: r.NullPayload, Key: []byte(r.Key), PublishTime: r.PublishTime,
		EventTime: r.EventTime, Producer: r.Producer, Partition: max(r.ID.Partition, 0),
		Offset: uint64(r.ID.Entry), SchemaVersion: r.SchemaVersion, //nolint:gosec // not negative
	}
	for i := range r.Properties {
		p := &r.Properties[i]
		m.Headers = append(m.Headers, filter.Header{Name: []byte(p.Key), Value: []byte(p.Value), Null: p.Null})
	}
	return m
}

// cursor returns where the search continues: the topic's incarnation and the next entry of each
// partition, as varints in base64.
func (s *Search) cursor() string {
	b := binary.AppendUvarint(nil, uint64(s.target.id))
	for _, part := range s.parts {
		b = binary.AppendUvarint(b, part.next)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// seekCursor continues at a cursor. A partition that was added since is read from its beginning.
func (s *Search) seekCursor(text string) error {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return ErrCursor
	}
	id, n := binary.Uvarint(b)
	if n <= 0 || engine.TopicID(id) != s.target.id {
		return ErrCursor
	}
	b = b[n:]
	for _, part := range s.parts {
		if len(b) == 0 {
			return nil
		}
		next, n := binary.Uvarint(b)
		if n <= 0 {
			return ErrCursor
		}
		part.next, b = min(max(part.next, next), part.end), b[n:]
	}
	if len(b) > 0 {
		return ErrCursor
	}
	return nil
}
