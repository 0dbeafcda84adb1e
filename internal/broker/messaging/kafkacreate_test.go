package messaging_test

import (
	"errors"
	"testing"

	"freshet/internal/broker/messaging"
)

// TestRegisteredSchemaIDsFromTheStart checks that a topic created over the Kafka protocol can
// require schema ids.
func TestRegisteredSchemaIDsFromTheStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, messaging.Options{Schemas: fakeRegistry{"orders-value": 7}})
	created, err := c.Kafka.CreateKafkaTopic(t.Context(), topic("orders"), 1,
		map[string]string{messaging.PropertyValueValidation: "true"}, false)
	c.do(err)
	if _, err := c.Producer.Produce(t.Context(), created.Name(), text("plain")); !errors.Is(err,
		messaging.ErrSchemaPrefix) {
		t.Errorf("a value without an id: got %v, want %v", err, messaging.ErrSchemaPrefix)
	}
	if _, err := c.Producer.Produce(t.Context(), created.Name(), text("\x00\x00\x00\x00\x07rest")); err != nil {
		t.Errorf("a value with its id: got error %v, want none", err)
	}
}

// TestCompactedTopicsNeedKeys checks topics with cleanup.policy compact, alone and with delete.
func TestCompactedTopicsNeedKeys(t *testing.T) {
	t.Parallel()
	for policy, needed := range map[string]bool{
		"delete": false, "compact": true, "compact,delete": true,
		"delete, compact": true,
	} {
		c := newCluster(t, messaging.Options{})
		created, err := c.Kafka.CreateKafkaTopic(t.Context(), topic("t"), 1,
			map[string]string{"cleanup.policy": policy}, false)
		c.do(err)
		_, err = c.Producer.Produce(t.Context(), created.Name(), text("without a key"))
		if got := errors.Is(err, messaging.ErrMessage); got != needed {
			t.Errorf("%s: got %v, want rejected %t", policy, err, needed)
		}
	}
}
