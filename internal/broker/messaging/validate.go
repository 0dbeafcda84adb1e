package messaging

import (
	"context"
	"encoding/json"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/workpool"
	"freshet/internal/storage/engine"
)

// validation is how closely payloads are held against the topic's schema.
type validation uint8

const (
	unchecked validation = iota
	parsed               // they have the format that the schema's type says
	validated            // they fit the schema
)

// admit checks a message against the topic's rules and returns the version of
// the schema to stamp it with.
func (b *Broker) admit(ctx context.Context, t *topic, r *rules, m *Message) (int64, error) {
	at := int64(0)
	if m.DeliverAt != 0 {
		at = now()
	}
	if err := m.check(r, &b.limits, at); err != nil {
		return NoSchema, err
	}
	if r.stream.keyed && m.Key == "" && !m.EmptyKey {
		return NoSchema, errNoKey
	}
	if r.nameVersion && m.SchemaVersion == NoSchema {
		if n := len(t.schemas.current()); n > 1 {
			return NoSchema, errs.Newf(errs.Invalid, "%w: the topic has %d schema versions, and its policy "+
				"schemaVersionEnforced asks producers to say which one a message has: send the header "+
				"X-Msg-Long-Schema-Version, in a batch schemaVersion", ErrMessage, n)
		}
	}
	v, err := t.schemas.choose(m.SchemaVersion)
	if err != nil {
		return NoSchema, err
	}
	if t.prefixedKey || t.prefixedValue {
		if err := b.checkPrefixes(ctx, t, m); err != nil {
			return NoSchema, err
		}
	}
	if v == nil {
		return NoSchema, nil
	}
	if r.validation != unchecked && !m.NullPayload {
		if err := b.checkPayload(ctx, t.id, v, r.validation, m); err != nil {
			return NoSchema, err
		}
	}
	return v.Version, nil
}

// admitLarge is admit for a payload whose check takes noticeable time: only some
// of those are checked at a time.
func (b *Broker) admitLarge(ctx context.Context, t *topic, r *rules, m *Message) (version int64, err error) {
	err = b.pool.Job(ctx).Do(workpool.Payloads, func() error {
		version, err = b.admit(ctx, t, r, m)
		return err
	})
	return version, err
}

// checkPayload holds a message against a version of its topic's schema.
func (b *Broker) checkPayload(ctx context.Context, id engine.TopicID, v *schemaVersion, how validation,
	m *Message,
) error {
	check, err := b.checkerOf(ctx, id, v, how)
	if err != nil {
		return err
	}
	if err := check(m); err != nil {
		return errs.Newf(errs.Invalid, "%w (version %d, %s): %w", ErrPayload, v.Version, v.Type, err)
	}
	return nil
}

// checkerOf returns the checker of a schema, which is made when it is not in the
// cache.
func (b *Broker) checkerOf(ctx context.Context, id engine.TopicID, v *schemaVersion,
	how validation,
) (check checker, err error) {
	key := schemaKey{id, v.Version, how}
	if check, ok := b.parsed.Get(key); ok {
		return check, nil
	}
	err = b.pool.Job(ctx).Do(workpool.LaneOf(len(v.Text)), func() error {
		made, err := v.Schema.checker(how)
		check = made
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.parsed.Add(key, check, 1), nil
}

// syntaxChecker tells whether bytes have the format of a type, whatever the
// schema says of what is in them. Avro has no format without its schema.
func (s *Schema) syntaxChecker() (dataChecker, error) {
	switch s.Type {
	case SchemaJSON:
		return func(b []byte) error {
			if !json.Valid(b) {
				return errors.New("not JSON")
			}
			return nil
		}, nil
	case SchemaProtobufNative:
		return checkWire, nil
	}
	return s.dataChecker()
}
