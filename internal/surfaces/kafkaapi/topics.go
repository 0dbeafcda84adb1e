package kafkaapi

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity/access"
)

// errTopicID means that a topic id does not belong to this cluster.
var errTopicID = errors.New("topic id is unknown")

const (
	maxTopicName = names.MaxKafkaTopic
	// maxClientTopicName is the length of the longest name that clients may use, with tenant and namespace.
	maxClientTopicName = 4 * maxTopicName
)

// topicName resolves the topic name of a client (docs/spec/stream.md#names). The topic need not
// exist.
func (c *call) topicName(ctx context.Context, clientName string) (names.Topic, error) {
	if strings.Contains(clientName, "/") {
		topic, err := names.ParseTopic(cut(clientName, maxClientTopicName)) // a longer name is invalid anyway
		if err != nil {
			return names.Topic{}, fmt.Errorf("%w: %w", messaging.ErrName, err)
		}
		return topic, nil
	}
	if !names.IsKafkaTopic(clientName) {
		return names.Topic{}, fmt.Errorf("%w: %q; use letters, digits, dots, dashes and underscores, at most %d",
			messaging.ErrName, cut(clientName, maxTopicName), maxTopicName)
	}
	local := names.Topic{Namespace: c.session.namespace, Local: clientName}
	elsewhere, ok := parseDottedName(clientName)
	if !ok {
		return local, nil
	}
	namespaces := c.session.cluster.Namespaces
	if namespaces.HasNamespaceCached(elsewhere.Namespace) {
		return elsewhere, nil
	}
	// Where the topic exists the namespace does not, because the catalogue does not allow both.
	if c.session.cluster.Topics.HasTopicCached(local) {
		return local, nil
	}
	if exists, err := namespaces.HasNamespace(ctx, elsewhere.Namespace); err != nil || exists {
		return elsewhere, err
	}
	return local, nil
}

// parseDottedName parses tenant.namespace.topic. ok is false for a name of another form.
func parseDottedName(clientName string) (topic names.Topic, ok bool) {
	ns, local, ok := names.CutNamespace(clientName)
	if !ok {
		return names.Topic{}, false
	}
	topic, err := names.NewTopic(ns.Tenant, ns.Name, local)
	return topic, err == nil
}

// displayName returns the name of an existing topic for responses: bare in the default namespace,
// tenant.namespace.topic elsewhere. If topicName would resolve that to another topic, or to none,
// displayName returns the full name with slashes.
func (c *call) displayName(topic names.Topic) string {
	if topic.Namespace == c.session.namespace {
		elsewhere, ok := parseDottedName(topic.Local)
		if !names.IsKafkaTopic(topic.Local) ||
			ok && c.session.cluster.Namespaces.HasNamespaceCached(elsewhere.Namespace) {
			return topic.String()
		}
		return topic.Local
	}
	clientName := topic.Namespace.Tenant + "." + topic.Namespace.Name + "." + topic.Local
	if read, ok := parseDottedName(clientName); !ok || read != topic || !names.IsKafkaTopic(clientName) {
		return topic.String()
	}
	return clientName
}

// topic looks up a topic on which the caller has one of the permissions. Without a permission the
// error does not reveal whether the topic exists, or whether the namespace of a dotted name does.
func (c *call) topic(ctx context.Context, clientName string,
	wanted ...access.Permission,
) (*messaging.KafkaTopic, error) {
	name, err := c.topicName(ctx, clientName)
	if err != nil {
		return nil, err
	}
	if err := c.authorizeTopic(ctx, name, wanted...); err != nil {
		return nil, c.hideNamespace(ctx, clientName, name, err, wanted)
	}
	return c.session.cluster.Topics.KafkaTopic(ctx, name)
}

// hideNamespace returns the error for a topic that the caller has no permission on. If the caller has one on the local
// topic of that name, the error is the same as for that topic, which does not exist.
func (c *call) hideNamespace(ctx context.Context, clientName string, name names.Topic, denied error,
	wanted []access.Permission,
) error {
	if !errors.Is(denied, errTopicDenied) {
		return denied
	}
	if _, ok := c.permittedLocal(ctx, clientName, name, wanted...); !ok {
		return denied
	}
	return messaging.ErrNoTopic
}

// permittedLocal returns the topic of the default namespace that a dotted name would mean if its namespace did not
// exist. ok is false if the name has one meaning only, or if the caller has no permission on that topic.
func (c *call) permittedLocal(ctx context.Context, clientName string, name names.Topic,
	wanted ...access.Permission,
) (local names.Topic, ok bool) {
	if _, dotted := parseDottedName(clientName); !dotted || name.Namespace == c.session.namespace ||
		strings.Contains(clientName, "/") {
		return names.Topic{}, false
	}
	quiet := *c
	quiet.unaudited = true
	local = names.Topic{Namespace: c.session.namespace, Local: clientName}
	return local, quiet.authorizeTopic(ctx, local, wanted...) == nil
}

// creatable returns the topic to create for the name of a client. A dotted name in a namespace where the caller may not
// create topics is a local name if the caller may create that: so the request fails as it would if the namespace
// did not exist. The catalogue rejects the local name, after all other checks.
func (c *call) creatable(ctx context.Context, clientName string, name names.Topic) (names.Topic, error) {
	denied := c.authorizeTopic(ctx, name, permitCreate)
	if errors.Is(denied, errTopicDenied) {
		if local, ok := c.permittedLocal(ctx, clientName, name, permitCreate); ok {
			return local, nil
		}
	}
	return name, denied
}

// requestedTopic looks up a topic that a request names, or has the id of, unless the request is invalid as
// a whole: then it returns that error.
func (c *call) requestedTopic(ctx context.Context, invalid error, clientName string, id [16]byte,
	wanted ...access.Permission,
) (*messaging.KafkaTopic, error) {
	if invalid != nil {
		return nil, invalid
	}
	return c.topicBy(ctx, clientName, id, wanted...)
}

// noTopicID is the id of a topic that a request names.
var noTopicID [16]byte

// topicBy looks up a topic by id if the request contains one, and otherwise by name.
func (c *call) topicBy(ctx context.Context, clientName string, id [16]byte,
	wanted ...access.Permission,
) (*messaging.KafkaTopic, error) {
	if id == noTopicID && c.requiresTopicID() {
		return nil, errTopicID
	}
	if id == noTopicID {
		return c.topic(ctx, clientName, wanted...)
	}
	number, ok := c.session.cluster.topicNumber(id)
	if !ok {
		return nil, errTopicID
	}
	topic, err := c.session.cluster.Topics.KafkaTopicByID(ctx, number)
	if errors.Is(err, messaging.ErrNoTopic) {
		return nil, errTopicID
	}
	if err != nil {
		return nil, err
	}
	if err := c.authorizeTopic(ctx, topic.Name(), wanted...); err != nil {
		if errors.Is(err, errTopicDenied) && !c.canDescribe(ctx, topic.Name()) {
			return nil, errTopicID // as for an id that does not exist
		}
		return nil, err
	}
	return topic, nil
}

// requiresTopicID reports whether requests of the call's version identify topics by id only.
func (c *call) requiresTopicID() bool {
	since := c.conn.server.apis[c.key].topicIDsSince
	return since > 0 && c.version >= since
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
