package messageapi

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"

	"freshet/internal/base/names"
	"freshet/internal/broker/messaging"
)

// headerFields collects header values, so that a response allocates one string and one slice
// for all of them; see BenchmarkHandler.
type headerFields struct {
	text  []byte
	names [10]string
	ends  [10]int
	n     int
}

// end ends a value: the text appended since the last end. name is its header; "" if it
// is not a header.
func (f *headerFields) end(name string) {
	f.names[f.n], f.ends[f.n] = name, len(f.text)
	f.n++
}

// write sets the headers and returns the whole text.
func (f *headerFields) write(h http.Header) string {
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

func (f *headerFields) id(id names.MessageID) {
	f.text = id.AppendBase64(f.text)
	f.end(headerMessageID)
	f.text = id.AppendText(f.text)
	f.end(headerStringID)
}

func (f *headerFields) number(name string, n int64) {
	f.text = strconv.AppendInt(f.text, n, 10)
	f.end(name)
}

func (f *headerFields) schema(version int64) {
	if version >= 0 {
		f.number(headerLongSchema, version)
		f.text = appendBase64Version(f.text, version)
		f.end(headerBase64Schema)
	}
}

// writeHeaders adds a received message's metadata to the response headers.
func writeHeaders(h http.Header, m *messaging.Received) {
	var buf [256]byte
	f := headerFields{text: buf[:0]}
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
	if m.Producer != "" {
		h[headerProducer] = []string{m.Producer}
	}
	metadataHeaders.Write(h, m)
}

// appendBase64Version appends a version as base64 of eight bytes, as Pulsar does.
func appendBase64Version(dst []byte, version int64) []byte {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(version))
	return base64.StdEncoding.AppendEncode(dst, raw[:])
}
