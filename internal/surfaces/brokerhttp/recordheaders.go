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

// RecordHeaders are the properties of a message in order and byte for byte. In
// JSON they are an array of arrays: the name, and the value in base64 or null. A
// name that is not UTF-8 is in base64 too, and a third element "base64" says so.
type RecordHeaders []messaging.Property

// MaxRecordHeaders bounds those that a producer may send over HTTP.
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
	`headers must be an array of [name, base64 value or null], with "base64" as third element when the name is in base64 too`)

// UnmarshalJSON implements json.Unmarshaler. It reads one header after the other,
// so that a body full of nothing does not become much larger in memory.
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
		var item [4]json.RawMessage // what is behind the third is nobody's
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

// jsonString is the string that JSON has, nil when it is none.
func jsonString(raw json.RawMessage) (s *string) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return s
}

// DecodeBase64 reads base64 in the standard alphabet or that for addresses, with
// or without padding.
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

// propertyObject is what a JSON object can hold of properties.
type propertyObject struct {
	values map[string]string
	whole  bool // it has all of them: texts, each name once
}

// asObject puts properties into a map; the last of several with one name counts.
func asObject(properties []messaging.Property) propertyObject {
	o := propertyObject{values: make(map[string]string, len(properties)), whole: true}
	for i := range properties {
		p := &properties[i]
		if p.Null || p.Key == "" || !Printable(p.Key) || !utf8.ValidString(p.Value) {
			o.whole = false
			continue
		}
		o.values[p.Key] = p.Value
	}
	o.whole = o.whole && len(o.values) == len(properties)
	return o
}

// ordered says whether properties are in the order of their names, each once:
// neither headers nor objects keep another.
func ordered(properties []messaging.Property) bool {
	for i := 1; i < len(properties); i++ {
		if properties[i-1].Key >= properties[i].Key {
			return false
		}
	}
	return true
}

// PropertiesJSON returns properties as JSON has them: an object with those that are
// text, and the exact list when that leaves something out.
func PropertiesJSON(properties []messaging.Property) (map[string]string, RecordHeaders) {
	if len(properties) == 0 {
		return nil, nil
	}
	o := asObject(properties)
	if o.whole && ordered(properties) {
		return o.values, nil
	}
	return o.values, properties
}
