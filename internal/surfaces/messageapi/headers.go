package messageapi

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"freshet/internal/base/errs"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// Names of headers as net/http spells them. On input X-Pulsar- may stand for
// X-Msg-; on output only X-Msg- is used.
const (
	prefixMsg    = "X-Msg-"
	prefixPulsar = "X-Pulsar-"

	nameProperty = "Property-" // behind a prefix; the key follows

	headerMessageID    = "X-Msg-Message-Id"
	headerStringID     = "X-Msg-Message-String-Id"
	headerBase64Schema = "X-Msg-Base64-Schema-Version"
	headerLongSchema   = "X-Msg-Long-Schema-Version"
	headerSequence     = "X-Msg-Sequence-Id"
	headerEventTime    = "X-Msg-Event-Time"
	headerPublishTime  = "X-Msg-Publish-Time"
	headerPartitionKey = "X-Msg-Partition-Key"
	headerRedeliveries = "X-Msg-Redelivery-Count"
	headerProducer     = "X-Msg-Producer-Name"
	headerDuplicate    = "X-Msg-Duplicate"
	headerProperties   = "X-Msg-Properties"
	headerMaxUnacked   = "X-Max-Unacked"
)

// metadataHeaders are those of what a message has beside its payload.
var metadataHeaders = brokerhttp.HeadersWith(prefixMsg)

// ExposedHeaders are those that a page of another origin may read; property
// headers are added as they come.
func ExposedHeaders() []string {
	return []string{
		headerMessageID, headerStringID, headerBase64Schema, headerLongSchema, headerSequence, headerEventTime,
		headerPublishTime, headerPartitionKey, headerRedeliveries, headerProducer, headerDuplicate, headerProperties,
		metadataHeaders.KeyEncoding, metadataHeaders.NullValue, metadataHeaders.SchemaID, metadataHeaders.RecordHeaders,
		metadataHeaders.Omitted,
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
	var exact, list, keyEncoding string
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
		case "Partition-Key-Encoding":
			keyEncoding = value
		case "Null-Value":
			if m.NullPayload, err = parseFlag(value); err != nil {
				return badHeader(name, "true or false")
			}
		case "Record-Headers":
			list = value
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
	if keyEncoding != "" {
		keyed := has(h, headerPartitionKey) || has(h, prefixPulsar+"Partition-Key")
		if err := decodeKey(m, keyEncoding, keyed); err != nil {
			return badHeader(metadataHeaders.KeyEncoding, err.Error())
		}
	}
	switch {
	case list != "":
		if err := readRecordHeaders(list, m); err != nil {
			return err
		}
	case exact != "":
		if err := readProperties(exact, m); err != nil {
			return err
		}
	}
	return finishHeaders(h, m, after, list != "")
}

func parseFlag(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, strconv.ErrSyntax
}

// decodeKey takes the encoding off a key that is no text. A key that is there and
// empty then is one, which without an encoding it is not.
func decodeKey(m *messaging.Message, encoding string, keyed bool) error {
	if encoding != brokerhttp.EncodingBase64 {
		return errors.New("base64")
	}
	raw, err := brokerhttp.DecodeBase64(m.Key)
	if err != nil || !keyed {
		return errors.New("there only with a key in base64")
	}
	m.Key, m.EmptyKey, m.BinaryKey = string(raw), len(raw) == 0, true
	return nil
}

func has(h http.Header, name string) bool { return len(h[name]) > 0 }

// finishHeaders checks what was read, with listed properties as they are.
func finishHeaders(h http.Header, m *messaging.Message, after int64, listed bool) error {
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
	if len(m.Properties) > 1 && !listed {
		// Headers come in no order; what is stored has one.
		slices.SortFunc(m.Properties, func(a, b messaging.Property) int { return strings.Compare(a.Key, b.Key) })
	}
	if len(m.Properties) > maxProperties {
		return errs.Newf(errs.Invalid, "%w: it has more than %d properties", messaging.ErrMessage, maxProperties)
	}
	return checkText(m, listed)
}

// checkText demands UTF-8 of what did not come in base64, and names and a key that
// would fit into a header.
func checkText(m *messaging.Message, listed bool) error {
	if !m.BinaryKey && strings.ContainsFunc(m.Key, isControl) {
		return errs.Newf(errs.Invalid,
			"%w: the key holds a control character; send it in base64, with %s or keyEncoding", messaging.ErrMessage,
			metadataHeaders.KeyEncoding)
	}
	ok := (m.BinaryKey || utf8.ValidString(m.Key)) && utf8.ValidString(m.Producer) && utf8.ValidString(m.IdempotencyKey)
	if !listed {
		for i := range m.Properties {
			p := &m.Properties[i]
			if p.Key == "" || strings.ContainsFunc(p.Key, isControl) {
				return errs.Newf(errs.Invalid, "%w: property name is empty or holds a control character; send such "+
					"as %s or headers", messaging.ErrMessage, metadataHeaders.RecordHeaders)
			}
			ok = ok && utf8.ValidString(p.Key) && utf8.ValidString(p.Value)
		}
	}
	if !ok {
		return errs.Newf(errs.Invalid, "%w: the key, the producer and the properties must be UTF-8",
			messaging.ErrMessage)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// deliverAfter turns a delay into a time. A delay past all bounds stays past
// them and is refused further down.
func deliverAfter(millis int64) int64 {
	if millis > messaging.LongestDelay.Milliseconds() {
		return 1 << 62 // never, however long it takes until somebody looks at it
	}
	return time.Now().UnixMilli() + millis
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
	raw, err := brokerhttp.DecodeBase64(value)
	if err != nil {
		return badHeader(headerProperties, want)
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

// readRecordHeaders reads X-Msg-Record-Headers: all properties, exactly.
func readRecordHeaders(value string, m *messaging.Message) error {
	raw, err := brokerhttp.DecodeBase64(value)
	if err != nil {
		return badHeader(metadataHeaders.RecordHeaders, "base64 of JSON")
	}
	var list brokerhttp.RecordHeaders
	if err = json.Unmarshal(raw, &list); err == nil && list == nil {
		err = errors.New("must be a list")
	}
	if err != nil {
		return errs.Newf(errs.Invalid, "%w: header %s: %w", messaging.ErrMessage, metadataHeaders.RecordHeaders, err)
	}
	m.Properties = list
	return nil
}
