package kafkaapi

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// errTopicID means that a topic id does not belong to this cluster.
var errTopicID = errors.New("topic id is unknown")

const maxTopicName = 249

// legal reports whether a name is a legal Kafka topic name.
func legal(name string) bool {
	if name == "" || len(name) > maxTopicName || name == "." || name == ".." {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// topicName resolves the topic name of a client (docs/spec/stream.md#names). The topic need not
// exist.
func (c *call) topicName(ctx context.Context, said string) (names.Topic, error) {
	if strings.Contains(said, "/") {
		topic, err := names.ParseTopic(cut(said, 4*maxTopicName)) // a longer name is invalid anyway
		if err != nil {
			return names.Topic{}, fmt.Errorf("%w: %w", messaging.ErrName, err)
		}
		return topic, nil
	}
	if !legal(said) {
		return names.Topic{}, fmt.Errorf("%w: %q; use letters, digits, dots, dashes and underscores, at most %d",
			messaging.ErrName, cut(said, maxTopicName), maxTopicName)
	}
	local := names.Topic{Namespace: c.session.namespace, Local: said}
	elsewhere, ok := dotted(said)
	if !ok {
		return local, nil
	}
	broker := c.session.cluster.Broker
	switch _, err := broker.StreamTopic(ctx, local); {
	case err == nil:
		return local, nil
	case errs.KindOf(err) != errs.NotFound && !errors.Is(err, messaging.ErrPartitionName):
		return names.Topic{}, err // the topic may exist, so the other interpretation may be wrong
	}
	if exists, err := broker.HasNamespace(ctx, elsewhere.Namespace); err != nil || exists {
		return elsewhere, err
	}
	return local, nil
}

// dotted parses tenant.namespace.topic. ok is false for a name of another form.
func dotted(said string) (topic names.Topic, ok bool) {
	parts := strings.SplitN(said, ".", 3)
	if len(parts) < 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return names.Topic{}, false
	}
	topic, err := names.NewTopic(parts[0], parts[1], parts[2])
	return topic, err == nil
}

// printed returns the name of an existing topic for responses: bare in the default namespace,
// tenant.namespace.topic elsewhere. If topicName would resolve that to another topic, or to none,
// displayName returns the full name with slashes.
func (c *call) printed(topic names.Topic) string {
	if topic.Namespace == c.session.namespace {
		if !legal(topic.Local) {
			return topic.String()
		}
		return topic.Local
	}
	said := topic.Namespace.Tenant + "." + topic.Namespace.Name + "." + topic.Local
	local := names.Topic{Namespace: c.session.namespace, Local: said}
	if read, ok := dotted(said); !ok || read != topic || !legal(said) || c.session.cluster.Broker.InView(local) {
		return topic.String()
	}
	return said
}

// topic looks up a topic on which the caller has one of the permissions. Without a permission the
// error does not reveal whether the topic exists.
func (c *call) topic(ctx context.Context, said string, wanted ...access.Permission) (*messaging.StreamTopic, error) {
	name, err := c.topicName(ctx, said)
	if err != nil {
		return nil, err
	}
	if err := c.mayTopic(ctx, name, wanted...); err != nil {
		return nil, err
	}
	return c.session.cluster.Broker.StreamTopic(ctx, name)
}

// topicBy looks up a topic by id if the request contains one, and otherwise by name.
func (c *call) topicBy(ctx context.Context, said string, id [16]byte,
	wanted ...access.Permission,
) (*messaging.StreamTopic, error) {
	if id == ([16]byte{}) {
		return c.topic(ctx, said, wanted...)
	}
	number, ok := c.session.cluster.topicNumber(id)
	if !ok {
		return nil, errTopicID
	}
	topic, err := c.session.cluster.Broker.StreamTopicByID(ctx, number)
	if errors.Is(err, messaging.ErrNoTopic) {
		return nil, errTopicID
	}
	if err != nil {
		return nil, err
	}
	return topic, c.mayTopic(ctx, topic.Name(), wanted...)
}

// topicID returns the Kafka topic id: the first half identifies the cluster, the second half is the
// topic's incarnation number.
func (c *Cluster) topicID(number uint64) (id [16]byte) {
	prefix := c.idPrefix()
	copy(id[:8], prefix[:])
	binary.BigEndian.PutUint64(id[8:], number)
	return id
}

// topicNumber returns the incarnation number in a topic id; false for an id of another cluster.
func (c *Cluster) topicNumber(id [16]byte) (uint64, bool) {
	prefix := c.idPrefix()
	return binary.BigEndian.Uint64(id[8:]), [8]byte(id[:8]) == prefix
}

func (c *Cluster) idPrefix() [8]byte {
	sum := sha256.Sum256([]byte("topic\x00" + c.UID))
	return [8]byte(sum[:8])
}
