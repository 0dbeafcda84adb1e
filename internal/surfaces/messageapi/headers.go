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

// Header names in net/http's canonical form. In requests, X-Pulsar- is accepted instead
// of X-Msg-; responses use X-Msg- only.
const (
	prefixMsg    = "X-Msg-"
	prefixPulsar = "X-Pulsar-"

	nameProperty = "Property-" // after a prefix and before the property's key

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

// metadataHeaders are the headers of a message's metadata.
var metadataHeaders = brokerhttp.MetadataHeadersWithPrefix(prefixMsg)

// ExposedHeaders returns the headers that a page of another origin may read. Property
// headers are added per response.
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

// Header values of many responses. They are shared to save allocations, so they must not
// be appended to; see BenchmarkHandler.
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

// readHeaders parses a message's metadata from the headers of a request. If there is no
// schema version, the broker chooses one.
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
				continue // another header, or X-Msg- takes precedence over X-Pulsar-
			}
		}
		value := values[0]
		var err error
		switch field {
		case "Sequence-Id":
			m.HasSequence = true
			if m.Sequence, err = strconv.ParseUint(value, 10, 64); err != nil {
				return badHeader(name, "an integer of at least 0")
			}
		case "Event-Time":
			if m.EventTime, err = parseMillis(value); err != nil {
				return badHeader(name, "a time in milliseconds since 1970")
			}
		case "Long-Schema-Version":
			if m.SchemaVersion, err = parseMillis(value); err != nil {
				return badHeader(name, "an integer of at least 0")
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
				// HTTP does not preserve the case of header names, so keys are lower case.
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

// decodeKey decodes a key that is not text. With an encoding, an empty key is a key;
// without one it means no key.
func decodeKey(m *messaging.Message, encoding string, keyed bool) error {
	if encoding != brokerhttp.EncodingBase64 {
		return errors.New("base64")
	}
	raw, err := brokerhttp.DecodeBase64(m.Key)
	if err != nil || !keyed {
		return errors.New("used only with a key in base64")
	}
	m.Key, m.EmptyKey, m.BinaryKey = string(raw), len(raw) == 0, true
	return nil
}

func has(h http.Header, name string) bool { return len(h[name]) > 0 }

// finishHeaders validates the metadata. If listed is set, the properties are an exact
// list and keep their order.
func finishHeaders(h http.Header, m *messaging.Message, after int64, listed bool) error {
	if keys := h["Idempotency-Key"]; len(keys) > 0 && keys[0] != "" {
		if m.IdempotencyKey = keys[0]; len(m.IdempotencyKey) > maxIdempotencyKey {
			return badHeader("Idempotency-Key", "at most 255 bytes long")
		}
	}
	if after >= 0 {
		if m.DeliverAt != 0 {
			return badHeader("X-Msg-Deliver-After-Ms", "absent if X-Msg-Deliver-At is present")
		}
		m.DeliverAt = deliverAfter(after)
	}
	if len(m.Properties) > 1 && !listed {
		// Headers have no order, but stored properties do.
		slices.SortFunc(m.Properties, func(a, b messaging.Property) int { return strings.Compare(a.Key, b.Key) })
	}
	if len(m.Properties) > maxProperties {
		return errs.Newf(errs.Invalid, "%w: more than %d properties", messaging.ErrMessage, maxProperties)
	}
	return checkText(m, listed)
}

// checkText checks that values that were not sent in base64 are UTF-8, and that property
// names and the key have no control characters.
func checkText(m *messaging.Message, listed bool) error {
	if !m.BinaryKey && strings.ContainsFunc(m.Key, isControl) {
		return errs.Newf(errs.Invalid,
			"%w: the key contains a control character; send it in base64, with %s or keyEncoding",
			messaging.ErrMessage, metadataHeaders.KeyEncoding)
	}
	ok := (m.BinaryKey || utf8.ValidString(m.Key)) && utf8.ValidString(m.Producer) && utf8.ValidString(m.IdempotencyKey)
	if !listed {
		for i := range m.Properties {
			p := &m.Properties[i]
			if p.Key == "" || strings.ContainsFunc(p.Key, isControl) {
				return errs.Newf(errs.Invalid, "%w: a property name is empty or contains a control character; "+
					"send such properties in %s or headers", messaging.ErrMessage, metadataHeaders.RecordHeaders)
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

// deliverAfter converts a delay to a time. A delay above the limit becomes a time that
// the broker rejects.
func deliverAfter(millis int64) int64 {
	if millis > messaging.DefaultMaxDelay.Milliseconds() {
		return 1 << 62 // above the limit, no matter when the broker checks it
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

// readProperties parses X-Msg-Properties: base64 of a JSON object whose values are
// strings. Its keys keep their case and take precedence over property headers.
func readProperties(value string, m *messaging.Message) error {
	const want = "base64 of a JSON object with string values"
	raw, err := brokerhttp.DecodeBase64(value)
	if err != nil {
		return badHeader(headerProperties, want)
	}
	var object map[string]string
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return badHeader(headerProperties, want)
	}
	others := m.Properties[:0]
	for _, p := range m.Properties {
		if _, again := object[p.Key]; !again {
			others = append(others, p)
		}
	}
	m.Properties = others
	for k, v := range object {
		m.Properties = append(m.Properties, messaging.Property{Key: k, Value: v})
	}
	return nil
}

// readRecordHeaders parses X-Msg-Record-Headers: the exact list of all properties.
func readRecordHeaders(value string, m *messaging.Message) error {
	raw, err := brokerhttp.DecodeBase64(value)
	if err != nil {
		return badHeader(metadataHeaders.RecordHeaders, "base64 of JSON")
	}
	var list brokerhttp.RecordHeaders
	if err = json.Unmarshal(raw, &list); err == nil && list == nil {
		err = errors.New("must be an array")
	}
	if err != nil {
		return errs.Newf(errs.Invalid, "%w: header %s: %w", messaging.ErrMessage, metadataHeaders.RecordHeaders, err)
	}
	m.Properties = list
	return nil
}
