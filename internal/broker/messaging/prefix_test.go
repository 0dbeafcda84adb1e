package messaging_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"freshet/internal/broker/messaging"
)

// TestSubjectNameStrategies checks that a schema id is accepted only if it is registered under the
// subject of the topic's strategy.
func TestSubjectNameStrategies(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Schemas: fakeRegistry{
		"orders-value": 7, "acme.Order": 20,
		"orders-acme.Other": 21,
	}})
	ctx := t.Context()
	name := topic("orders")
	c.do(c.Catalogue.CreateTopic(ctx, name, messaging.NewTopic{}))
	const classes = "io.confluent.kafka.serializers.subject."
	for strategy, want := range map[string]int32{
		"TopicNameStrategy": 7, "RecordNameStrategy": 20,
		"TopicRecordNameStrategy": 21,
	} {
		properties := map[string]string{
			messaging.PropertyValueValidation: "true",
			messaging.PropertyValueSubjects:   classes + strategy,
		}
		c.do(c.Catalogue.UpdateTopic(ctx, name, func(p *messaging.Policies) error {
			p.Properties = properties
			return nil
		}))
		for _, id := range []int32{7, 20, 21, 22} {
			value := binary.BigEndian.AppendUint32([]byte{0}, uint32(id))
			_, err := c.Producer.Produce(ctx, name, &messaging.Message{Payload: value, SchemaVersion: -1})
			if (err == nil) != (id == want) || err != nil && !errors.Is(err, messaging.ErrSchemaPrefix) {
				t.Errorf("%s, id %d: got %v, want only %d to be accepted", strategy, id, err, want)
			}
		}
	}
	err := c.Catalogue.UpdateTopic(ctx, name, func(p *messaging.Policies) error {
		p.Properties = map[string]string{messaging.PropertyKeySubjects: "TopicNameStrategy"}
		return nil
	})
	wantErr(t, err, messaging.ErrPolicy)
}
