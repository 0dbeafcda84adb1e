package brokerhttp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"freshet/internal/broker/messaging"
)

// RecordHeaders are the properties of a message in order and byte for byte. In JSON
// they are an array of arrays: the name, and the value in base64 or null. A name that
// is not UTF-8 is also in base64, and then the third element is "base64".
type RecordHeaders []messaging.Property

// MaxRecordHeaders is the number of record headers that a producer may send over HTTP.
const MaxRecordHeaders = 256

// MarshalJSON implements json.Marshaler.
func (l RecordHeaders) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		text := utf8.ValidString(l[i].Key)
		if text {
			b = append(b, Quote(l[i].Key)...)
		} else {
			b = appendBase64(b, l[i].Key)
		}
		b = append(b, ',')
		if l[i].Null {
			b = append(b, "null"...)
		} else {
			b = appendBase64(b, l[i].Value)
		}
		if !text {
			b = append(b, `,"`+EncodingBase64+`"`...)
		}
		b = append(b, ']')
	}
	return append(b, ']'), nil
}

func appendBase64(b []byte, s string) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, []byte(s))
	return append(b, '"')
}

var errRecordHeaders = errors.New(
	`headers must be an array of [name, base64 value or null], ` +
		`with "base64" as third element if the name is also in base64`)

// UnmarshalJSON implements json.Unmarshaler. It decodes one header at a time, so that
// a large array of empty elements does not need much more memory than its text.
func (l *RecordHeaders) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(b))
	if start, err := in.Token(); err != nil || start != json.Delim('[') {
		return errRecordHeaders
	}
	*l = RecordHeaders{}
	for in.More() {
		if len(*l) == MaxRecordHeaders {
			return fmt.Errorf("more than %d headers", MaxRecordHeaders)
		}
		var item [4]json.RawMessage // the fourth element is only read to reject it
		if err := in.Decode(&item); err != nil {
			return errRecordHeaders
		}
		p, err := recordHeader(&item)
		if err != nil {
			return err
		}
		*l = append(*l, p)
	}
	return nil
}

func recordHeader(item *[4]json.RawMessage) (p messaging.Property, err error) {
	name, value := jsonString(item[0]), jsonString(item[1])
	switch {
	case name == nil || item[1] == nil || item[3] != nil:
		return p, errRecordHeaders
	case value == nil && string(item[1]) != "null":
		return p, errRecordHeaders
	}
	p.Key, p.Null = *name, value == nil
	if item[2] != nil {
		if encoding := jsonString(item[2]); encoding == nil || *encoding != EncodingBase64 {
			return p, errRecordHeaders
		}
		raw, err := DecodeBase64(*name)
		if err != nil {
			return p, errRecordHeaders
		}
		p.Key = string(raw)
	}
	if value != nil {
		raw, err := DecodeBase64(*value)
		if err != nil {
			return p, errRecordHeaders
		}
		p.Value = string(raw)
	}
	return p, nil
}

// jsonString decodes a JSON string; nil if raw is not a string.
func jsonString(raw json.RawMessage) (s *string) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return s
}

// DecodeBase64 decodes base64 in the standard or the URL-safe alphabet, with or without
// padding.
func DecodeBase64(s string) ([]byte, error) {
	if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
		return raw, nil
	}
	s = strings.TrimRight(s, "=")
	if raw, err := base64.RawStdEncoding.DecodeString(s); err == nil {
		return raw, nil
	}
	return base64.RawURLEncoding.DecodeString(s)
}

// propertyObject has the properties that a JSON object can hold.
type propertyObject struct {
	values   map[string]string
	complete bool // values has all properties: all are text, and no name is repeated
}

// asObject converts properties to a map; the last of several with the same name wins.
func asObject(properties []messaging.Property) propertyObject {
	o := propertyObject{values: make(map[string]string, len(properties)), complete: true}
	for i := range properties {
		p := &properties[i]
		if p.Null || p.Key == "" || !Printable(p.Key) || !utf8.ValidString(p.Value) {
			o.complete = false
			continue
		}
		o.values[p.Key] = p.Value
	}
	o.complete = o.complete && len(o.values) == len(properties)
	return o
}

// sortedByName reports whether properties are sorted by name without duplicates. HTTP
// headers and JSON objects do not preserve any other order.
func sortedByName(properties []messaging.Property) bool {
	for i := 1; i < len(properties); i++ {
		if properties[i-1].Key >= properties[i].Key {
			return false
		}
	}
	return true
}

// PropertiesJSON returns properties for a JSON response: an object with those that are
// text, and the exact list if the object does not reproduce them.
func PropertiesJSON(properties []messaging.Property) (map[string]string, RecordHeaders) {
	if len(properties) == 0 {
		return nil, nil
	}
	o := asObject(properties)
	if o.complete && sortedByName(properties) {
		return o.values, nil
	}
	return o.values, properties
}
