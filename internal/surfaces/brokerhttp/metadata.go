package brokerhttp

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
)

// Limits of the metadata in response headers (docs/spec/messages.md#metadata).
const (
	maxHeaderMetadata   = 16 << 10 // bytes of key and properties; many clients reject larger headers
	maxHeaderProperties = 256      // number of properties that get a header each
)

// EncodingBase64 is the encoding of keys that are not text, in headers and in JSON.
const EncodingBase64 = "base64"

// Header values. They are shared between responses, so they must not be appended to.
var (
	valueTrue   = []string{"true"}
	valueBase64 = []string{EncodingBase64}
)

// MetadataHeaders are the names of the headers for a message's metadata. Kafka records
// can have keys and properties that are not valid in a header; those are sent in base64
// or omitted, never as plain headers.
type MetadataHeaders struct {
	Key, KeyEncoding, NullValue, SchemaID string

	Properties    string // base64 of a JSON object
	RecordHeaders string // base64 of RecordHeaders
	Omitted       string

	property string // prefix of the headers of single properties
}

// MetadataHeadersWithPrefix returns the header names with a prefix.
func MetadataHeadersWithPrefix(prefix string) *MetadataHeaders {
	return &MetadataHeaders{
		Key: prefix + "Partition-Key", KeyEncoding: prefix + "Partition-Key-Encoding",
		NullValue: prefix + "Null-Value", SchemaID: prefix + "Schema-Id",
		Properties: prefix + "Properties", RecordHeaders: prefix + "Record-Headers",
		Omitted: prefix + "Metadata-Omitted", property: prefix + "Property-",
	}
}

// Write adds a message's metadata to the response headers.
func (n *MetadataHeaders) Write(h http.Header, m *messaging.Received) {
	if m.NullPayload {
		h[n.NullValue] = valueTrue
	}
	if m.SchemaID != 0 {
		h[n.SchemaID] = []string{strconv.FormatInt(int64(m.SchemaID), 10)}
	}
	if MetadataBytes(m) > maxHeaderMetadata {
		h[n.Omitted] = valueTrue
		return
	}
	if m.Key != "" || m.EmptyKey {
		n.writeKey(h, m.Key)
	}
	if len(m.Properties) > 0 {
		n.writeProperties(h, m.Properties)
	}
}

// MetadataBytes returns the size of a message's key and properties.
func MetadataBytes(m *messaging.Received) int {
	size := len(m.Key)
	for i := range m.Properties {
		size += len(m.Properties[i].Key) + len(m.Properties[i].Value)
	}
	return size
}

// writeKey sends a key as plain text if it is text that arrives unchanged. An empty
// key is sent in base64: without the encoding, an empty header means no key.
func (n *MetadataHeaders) writeKey(h http.Header, key string) {
	if key != "" && Printable(key) && strings.Trim(key, " ") == key {
		h[n.Key] = []string{key}
		return
	}
	h[n.Key] = []string{base64.StdEncoding.EncodeToString([]byte(key))}
	h[n.KeyEncoding] = valueBase64
}

// writeProperties sends each property in a header of its own, if its name and value are
// valid there. If these headers do not reproduce the properties exactly, it adds the
// header RecordHeaders and, if the properties are a map of texts, the header Properties.
func (n *MetadataHeaders) writeProperties(h http.Header, properties []messaging.Property) {
	exact := len(properties) <= maxHeaderProperties
	for i := range properties {
		p := &properties[i]
		name, sameName := headerName(p.Key)
		value, sameValue := headerValue(p.Value)
		exact = exact && sameName && sameValue && !p.Null
		if name && value && !p.Null && len(properties) <= maxHeaderProperties {
			key := n.property + p.Key
			h[key] = append(h[key], p.Value)
			web.Expose(h, key)
		}
	}
	if exact && sortedByName(properties) {
		return
	}
	if object := asObject(properties); object.complete {
		setJSON(h, n.Properties, object.values)
	}
	setJSON(h, n.RecordHeaders, RecordHeaders(properties))
}

func setJSON(h http.Header, name string, v any) {
	if b, err := web.MarshalJSON(v); err == nil {
		h[name] = []string{base64.StdEncoding.EncodeToString(b)}
	}
}
