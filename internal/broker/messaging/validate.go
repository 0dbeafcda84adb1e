package messaging

import (
	"context"
	"encoding/json"
	"errors"

	"freshet/internal/base/errs"
	"freshet/internal/base/lru"
	"freshet/internal/base/workpool"
	"freshet/internal/broker/filter"
	"freshet/internal/storage/engine"
)

// validation is how strictly payloads are checked against the topic's schema.
type validation uint8

const (
	notValidated    validation = iota
	syntaxValidated            // payloads have the format of the schema's type
	schemaValidated            // payloads match the schema
)

// admission decides which records a topic accepts. Produce and Kafka append share it.
type admission struct {
	limits   *Limits
	registry SchemaRegistry // nil means no registry
	pool     *workpool.Pool
	checkers schemaCache

	contracts *contracts
	decoders  *lru.Cache[decoderKey, *filter.Schema] // of the payloads that contracts read
}

// admit validates a message against the topic's rules and returns the schema version to store with
// it. A nil contract accepts every message.
func (a *admission) admit(ctx context.Context, t *topic, r *rules, m *Message, contract *contractChecker,
) (int64, error) {
	at := int64(0)
	if m.DeliverAt != 0 {
		at = now()
	}
	if err := m.check(r, a.limits, at); err != nil {
		return NoSchema, err
	}
	if r.kafka.keyed && m.Key == "" && !m.EmptyKey {
		return NoSchema, errNoKey
	}
	if r.requireSchemaVersion && m.SchemaVersion == NoSchema {
		if n := len(t.schemas.current()); n > 1 {
			return NoSchema, errs.Newf(errs.Invalid, "%w: topic has %d schema versions, and its policy "+
				"schemaVersionEnforced requires producers to name one: send the header "+
				"X-Msg-Long-Schema-Version, or schemaVersion in a batch", ErrMessage, n)
		}
	}
	v, err := t.schemas.versionFor(m.SchemaVersion)
	if err != nil {
		return NoSchema, err
	}
	if t.prefixedKey || t.prefixedValue {
		if err := a.checkPrefixes(ctx, t, m); err != nil {
			return NoSchema, err
		}
	}
	version := NoSchema
	if v != nil {
		version = v.Version
		if r.validation != notValidated && !m.NullPayload {
			if err := a.checkPayload(ctx, t.id, v, r.validation, m); err != nil {
				return NoSchema, err
			}
		}
	}
	if err := contract.checkMessage(m, version); err != nil {
		return NoSchema, err
	}
	return version, nil
}

// admitOne is admit for a message that is sent alone.
func (a *admission) admitOne(ctx context.Context, t *topic, r *rules, m *Message) (int64, error) {
	contract, err := a.contractOf(ctx, t, r, nil)
	if err != nil {
		return NoSchema, err
	}
	if r.validation == notValidated && contract == nil || len(m.Payload) <= workpool.SmallBytes {
		return a.admit(ctx, t, r, m, contract)
	}
	return a.admitLarge(ctx, t, r, m, contract)
}

// admitLarge is admit for a payload whose check takes noticeable time. The work pool bounds the
// number of concurrent checks.
func (a *admission) admitLarge(ctx context.Context, t *topic, r *rules, m *Message, contract *contractChecker,
) (version int64, err error) {
	err = a.pool.Job(ctx).Do(workpool.Payloads, func() error {
		version, err = a.admit(ctx, t, r, m, contract)
		return err
	})
	return version, err
}

// admitBatch validates every message and stores schema versions and errors in results. It returns
// an error only when ctx ends first, when checking the messages together takes too long, or, with whole set, when a
// message breaks the contract of the topic.
func (a *admission) admitBatch(ctx context.Context, t *topic, r *rules, msgs []Message, results []ProduceResult,
	whole bool,
) error {
	contract, err := a.contractOf(ctx, t, r, nil)
	if err != nil {
		return err
	}
	admit := func() error {
		for i := range msgs {
			if err := ctx.Err(); err != nil {
				return err
			}
			results[i].SchemaVersion, results[i].Err = a.admit(ctx, t, r, &msgs[i], contract)
			if contract != nil && errors.Is(results[i].Err, ErrBatch) {
				return results[i].Err
			}
			var breach *ContractError
			if whole && contract != nil && errors.As(results[i].Err, &breach) {
				return &ContractError{Expression: breach.Expression, Index: i, Breach: breach.Breach}
			}
		}
		return nil
	}
	if r.validation == notValidated && contract == nil {
		return admit()
	}
	return a.pool.Job(ctx).Do(workpool.Payloads, admit)
}

// checkPayload checks a message against a version of its topic's schema.
func (a *admission) checkPayload(ctx context.Context, id engine.TopicID, v *schemaVersion, how validation,
	m *Message,
) error {
	check, err := a.checkerOf(ctx, id, v, how)
	if err != nil {
		return err
	}
	if err := check(m); err != nil {
		return errs.Newf(errs.Invalid, "%w (version %d, %s): %w", ErrPayload, v.Version, v.Type, err)
	}
	return nil
}

// checkerOf returns the cached checker of a schema, or creates it.
func (a *admission) checkerOf(ctx context.Context, id engine.TopicID, v *schemaVersion,
	how validation,
) (check checker, err error) {
	key := schemaKey{id, v.Version, how}
	if check, ok := a.checkers.Get(key); ok {
		return check, nil
	}
	err = a.pool.Job(ctx).Do(workpool.LaneOf(len(v.Text)), func() error {
		made, err := v.Schema.checker(how)
		check = made
		return err
	})
	if err != nil {
		return nil, err
	}
	return a.checkers.Add(key, check, 1), nil
}

// syntaxChecker checks only the format of a type and not the content that the schema describes.
// Avro has no format that is independent of its schema, so it is checked completely.
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
