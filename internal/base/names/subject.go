package names

import (
	"fmt"
	"strings"
)

// SubjectTopic returns the topic whose permissions apply to a registry subject, according to the
// table of docs/spec/registry.md#subjects: persistent://tenant/namespace/topic and
// tenant.namespace.topic contain the topic, and every other subject is a topic of
// public/default.
func SubjectTopic(subject string) (Topic, error) {
	if err := CheckSubject(subject); err != nil {
		return Topic{}, err
	}
	if strings.HasPrefix(subject, subjectScheme) {
		return ParseTopic(subject)
	}
	if parts := strings.SplitN(subject, ".", 4); len(parts) == 3 && parts[0] != "" && parts[1] != "" && parts[2] != "" {
		// A reserved word cannot be a tenant, so such a subject is a topic of public/default.
		if topic, err := NewTopic(parts[0], parts[1], parts[2]); err == nil {
			return topic, nil
		}
	}
	return Topic{Namespace: PublicDefault, Local: subject}, nil
}

const subjectScheme = string(Persistent) + "://"

// CheckSubject reports why s is not a valid subject: 1 to 249 characters of [a-zA-Z0-9._-], or
// persistent://tenant/namespace/topic with three valid names.
func CheckSubject(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: subject is empty", ErrName)
	case len(s) > MaxSubject:
		return fmt.Errorf("%w: subject is longer than %d characters", ErrName, MaxSubject)
	case strings.HasPrefix(s, subjectScheme):
		_, err := ParseTopic(s)
		return err
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return fmt.Errorf("%w: subject may contain only letters, digits and . _ -", ErrName)
		}
	}
	return nil
}
