package messaging

import (
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/base/names"
)

// Kafka clients name a topic of another namespace tenant.namespace.topic. A topic whose own name
// begins so would have to share that name with a topic of the other namespace, and one of the two would
// receive the messages of the other's clients (docs/adr/0045-dotted-topic-names.md). Both checks run in
// updates of the catalogue, so that a topic and a namespace created at the same time, on any members,
// do not both pass.

// maxShadowed is how many topics a ShadowError lists.
const maxShadowed = 20

// ShadowError means that a namespace cannot be created, because Kafka clients would not reach existing topics by
// their names any more. Its text does not name the topics: the caller may lack the permission to see them.
type ShadowError struct {
	Namespace names.Namespace
	Topics    []names.Topic // some of the topics, at least one
}

// Error implements error.
func (e *ShadowError) Error() string { return ErrShadows.Error() }

// Unwrap returns ErrShadows.
func (e *ShadowError) Unwrap() error { return ErrShadows }

// checkDottedName rejects a new topic whose name begins with that of a namespace.
func (c *catalogueState) checkDottedName(name names.Topic) error {
	ns, rest, ok := names.CutNamespace(name.Local)
	if !ok {
		return nil
	}
	if _, exists := c.namespace(ns); !exists {
		return nil
	}
	return errs.Newf(errs.Conflict, "%w: Kafka clients read %q as topic %q of namespace %s; choose another name, "+
		"or create the topic in that namespace", ErrDottedName, name.Local, rest, ns)
}

// checkShadows rejects a new namespace if the names of existing topics begin with its name.
func (c *catalogueState) checkShadows(ns names.Namespace) error {
	prefix := ns.Tenant + "." + ns.Name + "."
	if read, _, ok := names.CutNamespace(prefix); !ok || read != ns {
		return nil // a dotted name cannot refer to this namespace
	}
	var shadowed []names.Topic
	c.namespaces.Scan(func(in *namespace) bool {
		from := topicItem{name: names.Topic{Namespace: in.name, Local: prefix}}
		c.topics.Ascend(from, func(item topicItem) bool {
			if item.name.Namespace != in.name || !strings.HasPrefix(item.name.Local, prefix) {
				return false
			}
			shadowed = append(shadowed, item.name)
			return len(shadowed) < maxShadowed
		})
		return len(shadowed) < maxShadowed
	})
	if len(shadowed) == 0 {
		return nil
	}
	return &ShadowError{Namespace: ns, Topics: shadowed}
}
