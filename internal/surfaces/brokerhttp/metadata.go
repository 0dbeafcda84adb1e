package brokerhttp

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
)

// Bounds of the metadata that a response has in its headers
// (docs/spec/messages.md#metadata).
const (
	maxHeaderMetadata   = 16 << 10 // bytes of key and properties; clients refuse much larger heads
	maxHeaderProperties = 256      // properties with a header of their own
)

// EncodingBase64 is how keys that are no text stand in headers and in JSON.
const EncodingBase64 = "base64"

// Values of headers. They are shared, so nothing may append to them.
var (
	valueTrue   = []string{"true"}
	valueBase64 = []string{EncodingBase64}
)

// MetadataHeaders are the names of the headers that carry what a message has
// beside its payload. Records of the stream protocol may have keys and properties
// that no header can carry; nothing of them ever becomes a header by itself.
type MetadataHeaders struct {
	Key, KeyEncoding, NullValue, SchemaID string

	Properties    string // base64 of a JSON object
	RecordHeaders string // base64 of RecordHeaders
	Omitted       string

	property string // the name of a property follows
}

// HeadersWith returns the names that begin with a prefix.
func HeadersWith(prefix string) *MetadataHeaders {
	return &MetadataHeaders{
		Key: prefix + "Partition-Key", KeyEncoding: prefix + "Partition-Key-Encoding",
		NullValue: prefix + "Null-Value", SchemaID: prefix + "Schema-Id",
		Properties: prefix + "Properties", RecordHeaders: prefix + "Record-Headers",
		Omitted: prefix + "Metadata-Omitted", property: prefix + "Property-",
	}
}

// Write puts a message's metadata into a response.
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

// MetadataBytes is the size of a message's key and properties.
func MetadataBytes(m *messaging.Received) int {
	size := len(m.Key)
	for i := range m.Properties {
		size += len(m.Properties[i].Key) + len(m.Properties[i].Value)
	}
	return size
}

// writeKey sends a key as it is when it is text that arrives unchanged. A key that
// is there and empty says that it is in base64, since an empty header alone means
// none to a producer.
func (n *MetadataHeaders) writeKey(h http.Header, key string) {
	if key != "" && Printable(key) && strings.Trim(key, " ") == key {
		h[n.Key] = []string{key}
		return
	}
	h[n.Key] = []string{base64.StdEncoding.EncodeToString([]byte(key))}
	h[n.KeyEncoding] = valueBase64
}

// writeProperties sends each property in a header of its own as far as HTTP can
// carry it. What else it takes to have them all exactly comes in Properties, when
// they are a map of texts, and in any case in RecordHeaders.
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
	if exact && ordered(properties) {
		return
	}
	if object := asObject(properties); object.whole {
		setJSON(h, n.Properties, object.values)
	}
	setJSON(h, n.RecordHeaders, RecordHeaders(properties))
}

func setJSON(h http.Header, name string, v any) {
	if b, err := web.MarshalJSON(v); err == nil {
		h[name] = []string{base64.StdEncoding.EncodeToString(b)}
	}
}
