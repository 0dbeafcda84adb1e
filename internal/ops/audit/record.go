package audit

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Decision is the outcome of a call's authorization.
type Decision string

// The decisions.
const (
	Allowed Decision = "allow"
	Denied  Decision = "deny"
)

// Record says who did what. Every field is a name, a number or a time.
type Record struct {
	Time         time.Time `json:"time"`
	Surface      string    `json:"surface"`                // resources, messages, registry, token
	Principal    string    `json:"principal,omitempty"`    // who; "" when nobody was recognized
	Organization string    `json:"organization,omitempty"` // whose thing it was about
	KeyID        string    `json:"keyId,omitempty"`        // the API key used, if one was
	Verb         string    `json:"verb"`                   // create, update, delete, produce, ...
	Resource     string    `json:"resource,omitempty"`     // the kind of thing: apikeys, topics, ...
	Scope        string    `json:"scope,omitempty"`        // which one: organization/acme/apikey/ci
	Permission   string    `json:"permission,omitempty"`   // what it needed
	Decision     Decision  `json:"decision"`
	By           string    `json:"by,omitempty"`   // what sort of thing decided
	Role         string    `json:"role,omitempty"` // the role that allowed it
	Binding      string    `json:"binding,omitempty"`
	Status       int       `json:"status,omitempty"` // of the response
	Source       string    `json:"source,omitempty"` // address of the caller
	UserAgent    string    `json:"userAgent,omitempty"`
	RequestID    string    `json:"requestId,omitempty"`
	Count        int64     `json:"count,omitempty"` // of records, when the record is about records
}

// Bounds on the fields, so that a line is small whatever callers send.
const (
	maxName  = 256
	maxScope = 1024
	redacted = "[redacted]"
)

// clean returns the record as it is written: bounded, valid UTF-8, and without
// anything that looks like a credential.
func (r Record) clean() Record {
	for _, field := range []*string{
		&r.Surface, &r.Principal, &r.Organization, &r.KeyID, &r.Verb, &r.Resource, &r.Permission,
		&r.By, &r.Role, &r.Binding, &r.Source, &r.UserAgent, &r.RequestID, (*string)(&r.Decision),
	} {
		*field = tidy(*field, maxName)
	}
	r.Scope = tidy(r.Scope, maxScope)
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Time = r.Time.UTC()
	return r
}

func tidy(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit] // redact before cutting, but do not search megabytes
	}
	s = redact(s)
	if len(s) > limit {
		s = s[:limit]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return s
}

// redact cuts out signed and encrypted tokens, which begin with the base64 of
// {", and whole texts that hold a private key.
func redact(s string) string {
	if strings.Contains(s, "PRIVATE KEY") {
		return redacted
	}
	const start = "eyJ"
	var b strings.Builder
	for {
		i := strings.Index(s, start)
		if i < 0 {
			break
		}
		end := i
		for end < len(s) && tokenByte(s[end]) {
			end++
		}
		b.WriteString(s[:i])
		if end-i < 16 {
			b.WriteString(s[i:end]) // a name that happens to begin so
		} else {
			b.WriteString(redacted)
		}
		s = s[end:]
	}
	if b.Len() == 0 {
		return s
	}
	b.WriteString(s)
	return b.String()
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' ||
		c == '=' || c == '+' || c == '/'
}
