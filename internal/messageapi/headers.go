package messageapi

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"freshet/internal/brokerhttp"
	"freshet/internal/errs"
	"freshet/internal/messaging"
	"freshet/internal/names"
	"freshet/internal/web"
)

// Names of headers as net/http spells them. On input X-Pulsar- may stand for
// X-Msg-; on output only X-Msg- is used.
const (
	prefixMsg    = "X-Msg-"
	prefixPulsar = "X-Pulsar-"

	nameProperty = "Property-" // behind a prefix; the key follows

	headerMessageID     = "X-Msg-Message-Id"
	headerStringID      = "X-Msg-Message-String-Id"
	headerBase64Schema  = "X-Msg-Base64-Schema-Version"
	headerLongSchema    = "X-Msg-Long-Schema-Version"
	headerSequence      = "X-Msg-Sequence-Id"
	headerEventTime     = "X-Msg-Event-Time"
	headerPublishTime   = "X-Msg-Publish-Time"
	headerPartitionKey  = "X-Msg-Partition-Key"
	headerRedeliveries  = "X-Msg-Redelivery-Count"
	headerProducer      = "X-Msg-Producer-Name"
	headerDuplicate     = "X-Msg-Duplicate"
	headerProperties    = "X-Msg-Properties"
	headerPropertyStart = "X-Msg-Property-"
	headerMaxUnacked    = "X-Max-Unacked"
)

// ExposedHeaders are those that a page of another origin may read; property
// headers are added as they come.
func ExposedHeaders() []string {
	return []string{
		headerMessageID, headerStringID, headerBase64Schema, headerLongSchema, headerSequence, headerEventTime,
		headerPublishTime, headerPartitionKey, headerRedeliveries, headerProducer, headerDuplicate, headerProperties,
	}
}

const (
	contentJSON   = "application/json"
	contentBinary = "application/octet-stream"
	contentText   = "text/plain; charset=utf-8"
	contentEvents = "text/event-stream"
)

// Header values that are the same in many responses. They are shared, so
// nothing may append to them: BenchmarkHandler.
var (
	valueJSON   = []string{contentJSON}
	valueBinary = []string{contentBinary}
	valueText   = []string{contentText}
	valueTrue   = []string{"true"}
)

const (
	maxIdempotencyKey = 255
	maxProperties     = 256
)

func badHeader(name string, want string) error {
	return errs.Newf(errs.Invalid, "%w: header %s must be %s", messaging.ErrMessage, name, want)
}

// readHeaders takes a message's metadata out of a request. A message without a
// schema version leaves the choice to the broker.
func readHeaders(h http.Header, m *messaging.Message) error {
	m.SchemaVersion = messaging.NoSchema
	after := int64(-1)
	var exact string
	for name, values := range h {
		if len(values) == 0 {
			continue
		}
		field, ok := strings.CutPrefix(name, prefixMsg)
		if !ok {
			if field, ok = strings.CutPrefix(name, prefixPulsar); !ok || has(h, prefixMsg+field) {
				continue // foreign, or said again in our own words
			}
		}
		value := values[0]
		var err error
		switch field {
		case "Sequence-Id":
			m.HasSequence = true
			if m.Sequence, err = strconv.ParseUint(value, 10, 64); err != nil {
				return badHeader(name, "a number of at least 0")
			}
		case "Event-Time":
			if m.EventTime, err = parseMillis(value); err != nil {
				return badHeader(name, "a time in milliseconds since 1970")
			}
		case "Long-Schema-Version":
			if m.SchemaVersion, err = parseMillis(value); err != nil {
				return badHeader(name, "a number of at least 0")
			}
		case "Base64-Schema-Version":
			if has(h, headerLongSchema) {
				continue
			}
			if m.SchemaVersion, err = parseBase64Version(value); err != nil {
				return badHeader(name, "eight bytes in base64")
			}
		case "Partition-Key":
			m.Key = value
		case "Producer-Name":
			m.Producer = value
		case "Deliver-At":
			if m.DeliverAt, err = parseMillis(value); err != nil {
				return badHeader(name, "a time in milliseconds since 1970")
			}
		case "Deliver-After-Ms":
			if after, err = parseMillis(value); err != nil {
				return badHeader(name, "a number of milliseconds")
			}
		case "Properties":
			exact = value
		default:
			if key, ok := strings.CutPrefix(field, nameProperty); ok && key != "" {
				// HTTP does not keep the case of names, so there is only one.
				m.Properties = append(m.Properties, messaging.Property{
					Key: strings.ToLower(key), Value: strings.Join(values, ","),
				})
			}
		}
	}
	if exact != "" {
		if err := readProperties(exact, m); err != nil {
			return err
		}
	}
	return finishHeaders(h, m, after)
}

func has(h http.Header, name string) bool { return len(h[name]) > 0 }

func finishHeaders(h http.Header, m *messaging.Message, after int64) error {
	if keys := h["Idempotency-Key"]; len(keys) > 0 && keys[0] != "" {
		if m.IdempotencyKey = keys[0]; len(m.IdempotencyKey) > maxIdempotencyKey {
			return badHeader("Idempotency-Key", "at most 255 bytes long")
		}
	}
	if after >= 0 {
		if m.DeliverAt != 0 {
			return badHeader("X-Msg-Deliver-After-Ms", "absent when X-Msg-Deliver-At is given")
		}
		m.DeliverAt = deliverAfter(after)
	}
	if len(m.Properties) > 1 {
		// Headers come in no order; what is stored has one.
		slices.SortFunc(m.Properties, func(a, b messaging.Property) int { return strings.Compare(a.Key, b.Key) })
	}
	if len(m.Properties) > maxProperties {
		return errs.Newf(errs.Invalid, "%w: it has more than %d properties", messaging.ErrMessage, maxProperties)
	}
	return checkText(m)
}

// checkText demands UTF-8, since all of it must fit into JSON again, and a key
// that fits into a header again, wherever it came from.
func checkText(m *messaging.Message) error {
	if ok, _ := brokerhttp.HeaderValue(m.Key); !ok {
		return errs.Newf(errs.Invalid, "%w: the key holds a control character", messaging.ErrMessage)
	}
	ok := utf8.ValidString(m.Key) && utf8.ValidString(m.Producer) && utf8.ValidString(m.IdempotencyKey)
	for i := range m.Properties {
		ok = ok && utf8.ValidString(m.Properties[i].Key) && utf8.ValidString(m.Properties[i].Value)
	}
	if !ok {
		return errs.Newf(errs.Invalid, "%w: the key, the producer and the properties must be UTF-8", messaging.ErrMessage)
	}
	return nil
}

// deliverAfter turns a delay into a time. A delay past all bounds stays past
// them and is refused further down.
func deliverAfter(millis int64) int64 {
	at := time.Now().UnixMilli()
	if millis > 1<<62 {
		return 1 << 62
	}
	return at + millis
}

func parseMillis(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}

func parseBase64Version(s string) (int64, error) {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(raw) != 8 {
		return 0, strconv.ErrSyntax
	}
	n := int64(binary.BigEndian.Uint64(raw))
	if n < 0 {
		return 0, strconv.ErrRange
	}
	return n, nil
}

// readProperties reads X-Msg-Properties: base64 of a JSON object whose values
// are strings. Its keys keep their case and win over property headers.
func readProperties(value string, m *messaging.Message) error {
	const want = "base64 of a JSON object of strings"
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		if raw, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "=")); err != nil {
			return badHeader(headerProperties, want)
		}
	}
	var object map[string]string
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return badHeader(headerProperties, want)
	}
	kept := m.Properties[:0]
	for _, p := range m.Properties {
		if _, again := object[p.Key]; !again {
			kept = append(kept, p)
		}
	}
	m.Properties = kept
	for k, v := range object {
		m.Properties = append(m.Properties, messaging.Property{Key: k, Value: v})
	}
	return nil
}

// fields collects header values, so that a response costs one string and one
// slice for all of them: BenchmarkHandler.
type fields struct {
	text  []byte
	names [10]string
	ends  [10]int
	n     int
}

// end names the value that was appended to text since the last one; without a
// name it is no header's.
func (f *fields) end(name string) {
	f.names[f.n], f.ends[f.n] = name, len(f.text)
	f.n++
}

// write sets the headers and returns the text that they are part of.
func (f *fields) write(h http.Header) string {
	all, values := string(f.text), make([]string, f.n)
	from := 0
	for i := range f.n {
		if f.names[i] != "" {
			values[i] = all[from:f.ends[i]]
			h[f.names[i]] = values[i : i+1 : i+1]
		}
		from = f.ends[i]
	}
	return all
}

func (f *fields) id(id names.MessageID) {
	f.text = id.AppendBase64(f.text)
	f.end(headerMessageID)
	f.text = id.AppendText(f.text)
	f.end(headerStringID)
}

func (f *fields) number(name string, n int64) {
	f.text = strconv.AppendInt(f.text, n, 10)
	f.end(name)
}

func (f *fields) schema(version int64) {
	if version >= 0 {
		f.number(headerLongSchema, version)
		f.text = appendBase64Version(f.text, version)
		f.end(headerBase64Schema)
	}
}

// writeHeaders puts a received message's metadata into a response.
func writeHeaders(h http.Header, m *messaging.Received) {
	var buf [256]byte
	f := fields{text: buf[:0]}
	f.id(m.ID)
	f.text = strconv.AppendUint(f.text, m.Sequence, 10)
	f.end(headerSequence)
	f.number(headerPublishTime, m.PublishTime)
	f.number(headerRedeliveries, int64(m.Redeliveries))
	f.schema(m.SchemaVersion)
	if m.EventTime != 0 {
		f.number(headerEventTime, m.EventTime)
	}
	f.number("Content-Length", int64(len(m.Payload)))
	f.write(h)
	if m.Key != "" {
		h[headerPartitionKey] = []string{m.Key}
	}
	if m.Producer != "" {
		h[headerProducer] = []string{m.Producer}
	}
	if len(m.Properties) > 0 {
		writeProperties(h, m.Properties)
	}
}

// appendBase64Version appends a version in the eight bytes that Pulsar sends.
func appendBase64Version(dst []byte, version int64) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(version))
	return base64.StdEncoding.AppendEncode(dst, raw[:])
}

// writeProperties sends each property in a header of its own as far as HTTP
// can carry it, and all of them exactly in X-Msg-Properties when it cannot.
func writeProperties(h http.Header, properties []messaging.Property) {
	exact := true
	for i := range properties {
		p := &properties[i]
		name, sameName := brokerhttp.HeaderName(p.Key)
		value, sameValue := brokerhttp.HeaderValue(p.Value)
		exact = exact && sameName && sameValue
		if name && value {
			h[headerPropertyStart+p.Key] = []string{p.Value}
			web.Expose(h, headerPropertyStart+p.Key)
		}
	}
	if exact {
		return
	}
	object := make(map[string]string, len(properties))
	for i := range properties {
		object[properties[i].Key] = properties[i].Value
	}
	if b, err := web.MarshalJSON(object); err == nil {
		h[headerProperties] = []string{base64.StdEncoding.EncodeToString(b)}
	}
}
