package messaging

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"freshet/internal/base/errs"
)

// Properties of a topic that make it accept only records that start with the id of a schema
// registered under the topic's subject (docs/spec/messages.md#schema-ids).
const (
	PropertyKeyValidation   = "kop.stream.key.schema.validation"
	PropertyValueValidation = "kop.stream.value.schema.validation"

	// Subject name strategies of the two.
	PropertyKeySubjects   = "kop.stream.key.subject.name.strategy"
	PropertyValueSubjects = "kop.stream.value.subject.name.strategy"
)

// linkedProperties are the properties that are also Kafka topic configurations of the same name.
var linkedProperties = []string{
	PropertyKeyValidation, PropertyValueValidation, PropertyKeySubjects,
	PropertyValueSubjects,
}

// subjectStrategy is the subject name strategy of serializers.
type subjectStrategy uint8

const (
	byTopic          subjectStrategy = iota // <topic>-key, <topic>-value
	byRecord                                // <name of the record>
	byTopicAndRecord                        // <topic>-<name of the record>
)

// strategyPackage is the Java package of the strategy classes.
const strategyPackage = "io.confluent.kafka.serializers.subject."

var subjectStrategies = []string{
	strategyPackage + "TopicNameStrategy", strategyPackage + "RecordNameStrategy",
	strategyPackage + "TopicRecordNameStrategy",
}

// parseStrategy parses the class name of a strategy; "" means TopicNameStrategy.
func parseStrategy(name string) (subjectStrategy, bool) {
	i := slices.Index(subjectStrategies, name)
	return subjectStrategy(max(i, 0)), i >= 0 || name == "" //nolint:gosec // one of three
}

// checkPrefixes checks the five bytes of docs/spec/registry.md#wire-format where the topic requires
// them: 0, then the schema id in big endian. A key arrives in an HTTP header, which cannot contain
// these bytes, so base64 is also accepted. A message without a key has no key to check, and one
// with a null value (a tombstone) has no value to check.
func (a *admission) checkPrefixes(ctx context.Context, t *topic, m *Message) error {
	if a.registry == nil {
		return ErrNoRegistry
	}
	if t.prefixedKey && (m.Key != "" || m.EmptyKey) {
		key := []byte(m.Key)
		if raw, err := base64.StdEncoding.DecodeString(m.Key); err == nil && !m.BinaryKey && key[0] != 0 {
			key = raw
		}
		if err := a.checkPrefix(ctx, t, "key", key); err != nil {
			return err
		}
	}
	if t.prefixedValue && !m.NullPayload {
		return a.checkPrefix(ctx, t, "value", m.Payload)
	}
	return nil
}

func (a *admission) checkPrefix(ctx context.Context, t *topic, part string, data []byte) error {
	id, ok := prefixID(data)
	if !ok {
		return errs.Newf(errs.Invalid, "%w: %s must start with a zero byte and the schema id in four bytes",
			ErrSchemaPrefix, part)
	}
	list, err := a.subjectsOf(ctx, t, part, id)
	if err != nil {
		return fmt.Errorf("querying the schema registry: %w", err)
	}
	if len(list) == 0 {
		return errs.Newf(errs.Invalid, "%w: %s starts with id %d, whose schema does not exist or has no record name "+
			"for the topic's subject name strategy", ErrSchemaPrefix, part, id)
	}
	for _, subject := range list {
		has, err := a.registry.SubjectHasID(ctx, subject, id)
		if err != nil {
			return fmt.Errorf("querying the schema registry: %w", err)
		}
		if has {
			return nil
		}
	}
	return errs.Newf(errs.Invalid, "%w: %s starts with id %d, which is not registered for subject %s", ErrSchemaPrefix,
		part, id, list[0])
}

// prefixID reads the schema id at the start of a key or value.
func prefixID(data []byte) (int32, bool) {
	if len(data) < 5 || data[0] != 0 {
		return 0, false
	}
	return int32(binary.BigEndian.Uint32(data[1:5])), true
}

// subjectsOf returns the subjects under which serializers may have registered the schema of a
// topic's keys or values. They depend on the strategy and on the form of the topic name.
func (a *admission) subjectsOf(ctx context.Context, t *topic, part string, id int32) ([]string, error) {
	strategy := t.valueSubjects
	if part == "key" {
		strategy = t.keySubjects
	}
	ends := []string{part}
	if strategy != byTopic {
		var err error
		if ends, err = a.registry.RecordNames(ctx, id); err != nil || strategy == byRecord {
			return ends, err
		}
	}
	var list []string
	for _, end := range ends {
		dotted := strings.Join([]string{t.name.Namespace.Tenant, t.name.Namespace.Name, t.name.Local}, ".")
		list = append(list, t.name.KafkaName()+"-"+end, t.name.String()+"-"+end)
		if dotted != t.name.KafkaName() {
			list = append(list, dotted+"-"+end)
		}
	}
	return list, nil
}
