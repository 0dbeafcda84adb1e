package names

import (
	"errors"
	"fmt"
	"strings"
)

// Maximum lengths of names in bytes. They keep every name usable as a key and as a path segment.
const (
	MaxEntity  = 255 // tenant, namespace, subscription
	MaxLocal   = 512 // local name of a topic
	MaxSubject = 249 // registry subject, docs/spec/registry.md#subjects

	MaxKafkaTopic = 249 // topic in the Kafka protocol, docs/spec/stream.md#names
)

// The tenant and namespace that every cluster has from the start.
const (
	DefaultTenant    = "public"
	DefaultNamespace = "default"
)

// ErrName is wrapped by every error about a malformed name.
var ErrName = errors.New("malformed name")

// CheckTenant reports why s cannot be a tenant's name.
func CheckTenant(s string) error {
	if err := checkEntity("tenant", s); err != nil {
		return err
	}
	// In the first segment of a message path these words are the topic's domain.
	if s == string(Persistent) || s == string(NonPersistent) {
		return fmt.Errorf("%w: tenant %q is a reserved word", ErrName, s)
	}
	return nil
}

// CheckSubscription reports why s cannot be a subscription's name.
func CheckSubscription(s string) error { return checkEntity("subscription", s) }

// checkEntity checks s against ^[-=:.\w]+$, the rule of Pulsar's named entities.
func checkEntity(kind, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: %s name is empty", ErrName, kind)
	case len(s) > MaxEntity:
		return fmt.Errorf("%w: %s name is longer than %d bytes", ErrName, kind, MaxEntity)
	case s == "." || s == "..":
		return fmt.Errorf("%w: %s name %q is not allowed: in a path it means another folder", ErrName, kind, s)
	}
	for i := range len(s) {
		if !entityByte(s[i]) {
			return fmt.Errorf("%w: %s name %q may contain only letters, digits and - = : . _", ErrName, kind, s)
		}
	}
	return nil
}

func entityByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '=' || c == ':' || c == '.' || c == '_'
}

// Namespace is the name of a tenant's namespace.
type Namespace struct {
	Tenant string
	Name   string
}

// PublicDefault is the namespace of topic names without tenant and namespace.
var PublicDefault = Namespace{Tenant: DefaultTenant, Name: DefaultNamespace}

// NewNamespace returns a namespace after checking both parts.
func NewNamespace(tenant, name string) (Namespace, error) {
	ns := Namespace{Tenant: tenant, Name: name}
	if err := CheckTenant(tenant); err != nil {
		return ns, err
	}
	return ns, checkEntity("namespace", name)
}

// String returns tenant/namespace.
func (n Namespace) String() string { return n.Tenant + "/" + n.Name }

// Compare orders namespaces by tenant, then name.
func (n Namespace) Compare(other Namespace) int {
	if c := strings.Compare(n.Tenant, other.Tenant); c != 0 {
		return c
	}
	return strings.Compare(n.Name, other.Name)
}
