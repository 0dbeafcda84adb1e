package names

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Domain is the word before a topic's name that says how it is kept.
type Domain string

// The two domains. Topics that are not persistent have a name but no
// implementation here.
const (
	Persistent    Domain = "persistent"
	NonPersistent Domain = "non-persistent"
)

// ParseDomain reads a domain word.
func ParseDomain(s string) (Domain, bool) {
	switch Domain(s) {
	case Persistent:
		return Persistent, true
	case NonPersistent:
		return NonPersistent, true
	}
	return "", false
}

// Topic names a persistent topic, or one partition of it when Local ends in
// -partition-N. It is comparable, and its zero value is no topic.
type Topic struct {
	Namespace Namespace
	Local     string
}

// NewTopic checks all parts.
func NewTopic(tenant, namespace, local string) (Topic, error) {
	ns, err := NewNamespace(tenant, namespace)
	if err != nil {
		return Topic{}, err
	}
	return Topic{Namespace: ns, Local: local}, checkLocal(local)
}

// ParseTopic reads persistent://tenant/namespace/topic, tenant/namespace/topic
// or a bare topic of public/default. The four-part names of Pulsar's first
// version are refused, and so are slashes in the local name, which only a
// percent-encoded path segment can carry.
func ParseTopic(s string) (Topic, error) {
	rest := s
	if domain, after, ok := strings.Cut(s, "://"); ok {
		if Domain(domain) != Persistent {
			return Topic{}, fmt.Errorf("%w: topic %q is not in the domain %s, the only one supported", ErrName,
				s, Persistent)
		}
		if strings.Count(after, "/") != 2 {
			return Topic{}, fmt.Errorf("%w: topic %q is not of the form persistent://tenant/namespace/topic", ErrName,
				s)
		}
		rest = after
	}
	switch parts := strings.SplitN(rest, "/", 4); len(parts) {
	case 1:
		return NewTopic(DefaultTenant, DefaultNamespace, parts[0])
	case 3:
		return NewTopic(parts[0], parts[1], parts[2])
	}
	return Topic{}, fmt.Errorf("%w: topic %q is not of the form topic, tenant/namespace/topic or "+
		"persistent://tenant/namespace/topic", ErrName, s)
}

// checkLocal is freer than the rule of tenants: anything printable goes.
func checkLocal(s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("%w: topic name is blank", ErrName)
	case len(s) > MaxLocal:
		return fmt.Errorf("%w: topic name is longer than %d bytes", ErrName, MaxLocal)
	case s == "." || s == "..":
		return fmt.Errorf("%w: topic name %q is not allowed: in a path it means another folder", ErrName, s)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: topic name is not UTF-8", ErrName)
	case strings.TrimSpace(s) != s:
		return fmt.Errorf("%w: topic name %q begins or ends with white space", ErrName, s)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: topic name %q holds a control character", ErrName, s)
		}
	}
	return nil
}

// String returns persistent://tenant/namespace/topic.
func (t Topic) String() string {
	return string(Persistent) + "://" + t.Namespace.Tenant + "/" + t.Namespace.Name + "/" + t.Local
}

// StreamName is how readers of streams call the topic: bare in public/default,
// else tenant.namespace.topic. Topics of several namespaces can share one; see
// ListName for a name that is the topic's alone.
func (t Topic) StreamName() string {
	if t.Namespace == PublicDefault {
		return t.Local
	}
	return t.Namespace.Tenant + "." + t.Namespace.Name + "." + t.Local
}

// ListName is how the topic list of docs/spec/messages.md#topic-list prints the
// topic: the shortest of its names that ParseListName reads as this topic and no
// other.
func (t Topic) ListName() string {
	dotted := t.Namespace.Tenant + "." + t.Namespace.Name + "." + t.Local
	for _, name := range []string{t.StreamName(), dotted} {
		if read, err := ParseListName(name); err == nil && read == t {
			return name
		}
	}
	return t.String()
}

// ParseListName reads a bare topic, tenant.namespace.topic or a full name.
func ParseListName(s string) (Topic, error) {
	if strings.Contains(s, "/") {
		return ParseTopic(s)
	}
	if parts := strings.SplitN(s, ".", 3); len(parts) == 3 && parts[0] != "" && parts[1] != "" {
		return NewTopic(parts[0], parts[1], parts[2])
	}
	return ParseTopic(s)
}

// Internal reports whether the topic serves a system and not its users, which
// by the convention of Pulsar and Kafka shows in two leading underscores.
func (t Topic) Internal() bool { return strings.HasPrefix(t.Local, "__") }

// Compare orders topics by namespace, then local name.
func (t Topic) Compare(other Topic) int {
	if c := t.Namespace.Compare(other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(t.Local, other.Local)
}

const partitionInfix = "-partition-"

// Partition splits the name of one partition into the topic it belongs to and
// its index. ok is false for a name without the suffix -partition-N.
func (t Topic) Partition() (parent Topic, index int32, ok bool) {
	i := strings.LastIndex(t.Local, partitionInfix)
	if i <= 0 {
		return t, -1, false
	}
	digits := t.Local[i+len(partitionInfix):]
	// "-partition-01" and "-partition-+1" would be second names of one
	// partition; they are topics of their own.
	if digits == "" || (digits[0] == '0' && len(digits) > 1) {
		return t, -1, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return t, -1, false
	}
	return Topic{Namespace: t.Namespace, Local: t.Local[:i]}, int32(n), true
}

// WithPartition returns the name of one partition of the topic.
func (t Topic) WithPartition(index int32) Topic {
	t.Local += partitionInfix + strconv.Itoa(int(index))
	return t
}
