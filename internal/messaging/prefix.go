package messaging

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"freshet/internal/errs"
	"freshet/internal/names"
)

// Properties of a topic that make it take only records which start with the
// id of a schema registered under the topic's subject
// (docs/spec/messages.md#schema-ids).
const (
	PropertyKeyValidation   = "kop.stream.key.schema.validation"
	PropertyValueValidation = "kop.stream.value.schema.validation"
)

// checkPrefixes demands the five bytes of docs/spec/registry.md#wire-format
// where the topic asks for them: 0, then the schema's id in big endian. A key
// travels in a header, which cannot hold such bytes, so it may also come in
// base64; a message without a key has none to check, nor has one without a value,
// which deletes what has its key.
func (b *Broker) checkPrefixes(ctx context.Context, t *topic, m *Message) error {
	if b.registry == nil {
		return ErrNoRegistry
	}
	if t.prefixedKey && (m.Key != "" || m.EmptyKey) {
		key := []byte(m.Key)
		if raw, err := base64.StdEncoding.DecodeString(m.Key); err == nil && !m.BinaryKey && key[0] != 0 {
			key = raw
		}
		if err := b.checkPrefix(ctx, t, "key", key); err != nil {
			return err
		}
	}
	if t.prefixedValue && !m.NullPayload {
		return b.checkPrefix(ctx, t, "value", m.Payload)
	}
	return nil
}

func (b *Broker) checkPrefix(ctx context.Context, t *topic, part string, data []byte) error {
	id, ok := prefixID(data)
	if !ok {
		return errs.Newf(errs.Invalid, "%w: %s must start with a zero byte and the schema id in four bytes", ErrSchemaPrefix, part)
	}
	for _, subject := range subjects(t.name, part) {
		has, err := b.registry.SubjectHasID(ctx, subject, id)
		if err != nil {
			return fmt.Errorf("asking the schema registry: %w", err)
		}
		if has {
			return nil
		}
	}
	return errs.Newf(errs.Invalid, "%w: %s starts with id %d, which is not registered for subject %s", ErrSchemaPrefix, part, id, subjects(t.name, part)[0])
}

// prefixID reads the schema id in front of a key or value.
func prefixID(data []byte) (int32, bool) {
	if len(data) < 5 || data[0] != 0 {
		return 0, false
	}
	return int32(binary.BigEndian.Uint32(data[1:5])), true
}

// subjects are the names under which serializers register the schema of a
// topic's keys or values, depending on how they call the topic.
func subjects(t names.Topic, part string) []string {
	dotted := strings.Join([]string{t.Namespace.Tenant, t.Namespace.Name, t.Local}, ".")
	list := []string{t.StreamName() + "-" + part, t.String() + "-" + part}
	if dotted != t.StreamName() {
		list = append(list, dotted+"-"+part)
	}
	return list
}
