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

// Record is an audit record. Every field is a name, a number or a time.
type Record struct {
	Time         time.Time `json:"time"`
	Surface      string    `json:"surface"`                // resources, messages, registry, token
	Principal    string    `json:"principal,omitempty"`    // the caller; "" if it was not authenticated
	Organization string    `json:"organization,omitempty"` // the organization of the resource
	KeyID        string    `json:"keyId,omitempty"`        // the API key of the caller, if it used one
	Verb         string    `json:"verb"`                   // create, update, delete, produce, ...
	Resource     string    `json:"resource,omitempty"`     // the kind of resource: apikeys, topics, ...
	Scope        string    `json:"scope,omitempty"`        // the resource: organization/acme/apikey/ci
	Permission   string    `json:"permission,omitempty"`   // the permission that the call needed
	Decision     Decision  `json:"decision"`
	By           string    `json:"by,omitempty"`   // the kind of rule that decided
	Role         string    `json:"role,omitempty"` // the role that allowed the call
	Binding      string    `json:"binding,omitempty"`
	Status       int       `json:"status,omitempty"` // status of the response
	Source       string    `json:"source,omitempty"` // address of the caller
	UserAgent    string    `json:"userAgent,omitempty"`
	RequestID    string    `json:"requestId,omitempty"`
	Count        int64     `json:"count,omitempty"` // number of dropped or suppressed records that it stands for
}

// Limits of the fields in bytes, so that callers cannot write long lines.
const (
	maxName  = 256
	maxScope = 1024
	redacted = "[redacted]"
)

// clean returns the record for the file: with limited fields, in valid UTF-8, and
// without text that looks like a credential.
func (r Record) clean() Record {
	for _, field := range []*string{
		&r.Surface, &r.Principal, &r.Organization, &r.KeyID, &r.Verb, &r.Resource, &r.Permission,
		&r.By, &r.Role, &r.Binding, &r.Source, &r.UserAgent, &r.RequestID, (*string)(&r.Decision),
	} {
		*field = cleanField(*field, maxName)
	}
	r.Scope = cleanField(r.Scope, maxScope)
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Time = r.Time.UTC()
	return r
}

func cleanField(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit] // redact before truncating, but do not search megabytes
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

// redact removes signed and encrypted tokens, which begin with the base64 of {", and
// replaces a whole text that contains a private key.
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
			b.WriteString(s[i:end]) // too short for a token: a name with the same beginning
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
