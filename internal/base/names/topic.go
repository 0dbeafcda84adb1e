package names

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Domain is the prefix of a topic's name that determines whether its messages are persistent.
type Domain string

// The two domains. Non-persistent topics are parsed but not implemented.
const (
	Persistent    Domain = "persistent"
	NonPersistent Domain = "non-persistent"
)

// ParseDomain parses a domain.
func ParseDomain(s string) (Domain, bool) {
	switch Domain(s) {
	case Persistent:
		return Persistent, true
	case NonPersistent:
		return NonPersistent, true
	}
	return "", false
}

// Topic is the name of a persistent topic, or of one of its partitions when Local ends in
// -partition-N. It is comparable, and its zero value is not a valid name.
type Topic struct {
	Namespace Namespace
	Local     string
}

// NewTopic returns a topic after checking all parts.
func NewTopic(tenant, namespace, local string) (Topic, error) {
	ns, err := NewNamespace(tenant, namespace)
	if err != nil {
		return Topic{}, err
	}
	return Topic{Namespace: ns, Local: local}, checkLocal(local)
}

// ParseTopic parses persistent://tenant/namespace/topic, tenant/namespace/topic or the local name
// of a topic of public/default. It rejects the four-part names of Pulsar's first version, and
// slashes in the local name, which are possible only in a percent-encoded path segment.
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

// checkLocal is less strict than the rule for tenants: it accepts every printable character.
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
			return fmt.Errorf("%w: topic name %q contains a control character", ErrName, s)
		}
	}
	return nil
}

// IsKafkaTopic reports whether Kafka clients can use s as the name of a topic (docs/spec/stream.md#names). Topics that
// were created over HTTP can have other names.
func IsKafkaTopic(s string) bool {
	if s == "" || len(s) > MaxKafkaTopic || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// String returns persistent://tenant/namespace/topic.
func (t Topic) String() string {
	return string(Persistent) + "://" + t.Namespace.Tenant + "/" + t.Namespace.Name + "/" + t.Local
}

// KafkaName returns the topic's name in the Kafka protocol: the local name for a topic of
// public/default, otherwise tenant.namespace.topic. It is not unique: topics of several
// namespaces can share one. See ListName for a unique name.
func (t Topic) KafkaName() string {
	if t.Namespace == PublicDefault {
		return t.Local
	}
	return t.Namespace.Tenant + "." + t.Namespace.Name + "." + t.Local
}

// ListName returns the name of the topic in the topic list (docs/spec/messages.md#topic-list):
// the shortest of its names that ParseListName parses as this topic.
func (t Topic) ListName() string {
	dotted := t.Namespace.Tenant + "." + t.Namespace.Name + "." + t.Local
	for _, name := range []string{t.KafkaName(), dotted} {
		if read, err := ParseListName(name); err == nil && read == t {
			return name
		}
	}
	return t.String()
}

// ParseListName parses a local name, tenant.namespace.topic or a full name.
func ParseListName(s string) (Topic, error) {
	if strings.Contains(s, "/") {
		return ParseTopic(s)
	}
	if parts := strings.SplitN(s, ".", 3); len(parts) == 3 && parts[0] != "" && parts[1] != "" {
		return NewTopic(parts[0], parts[1], parts[2])
	}
	return ParseTopic(s)
}

// CutNamespace splits tenant.namespace.rest. ok is false for a string of another form. A tenant or
// namespace with a dot in its name has no such form.
func CutNamespace(s string) (ns Namespace, rest string, ok bool) {
	tenant, s, _ := strings.Cut(s, ".")
	name, rest, ok := strings.Cut(s, ".")
	if !ok {
		return Namespace{}, "", false
	}
	ns, err := NewNamespace(tenant, name)
	return ns, rest, err == nil
}

// Internal reports whether the topic is internal to a system. By the convention of Pulsar and
// Kafka, the name of an internal topic has two leading underscores.
func (t Topic) Internal() bool { return strings.HasPrefix(t.Local, "__") }

// Compare orders topics by namespace, then local name.
func (t Topic) Compare(other Topic) int {
	if c := t.Namespace.Compare(other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(t.Local, other.Local)
}

const partitionInfix = "-partition-"

// Partition splits the name of a partition into its topic and its index. ok is false for a name
// without the suffix -partition-N.
func (t Topic) Partition() (parent Topic, index int32, ok bool) {
	i := strings.LastIndex(t.Local, partitionInfix)
	if i <= 0 {
		return t, -1, false
	}
	digits := t.Local[i+len(partitionInfix):]
	// "-partition-01" and "-partition-+1" would be second names of a partition; they
	// are separate topics instead.
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
