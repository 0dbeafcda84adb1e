package messageapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"freshet/internal/base/names"
	"freshet/internal/broker/filter"
	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
	"freshet/internal/storage/engine"
	"freshet/test/tally"
)

// record is a Kafka record.
type record struct {
	key, value []byte
	headers    []records.Header
}

func header(name string, value []byte) records.Header {
	return records.Header{Key: []byte(name), Value: value}
}

// oddRecords have keys, values and headers that are hard to represent in HTTP.
var oddRecords = map[string]record{
	"plain": {
		key: []byte("k"), value: []byte("v"),
		headers: []records.Header{header("a", []byte("1")), header("b", []byte("2"))},
	},
	"nothing":           {value: []byte{}},
	"tombstone":         {key: []byte("k")},
	"empty key":         {key: []byte{}, value: []byte("v")},
	"binary key":        {key: []byte{0, 1, 0xff, '\r', '\n'}, value: []byte("v")},
	"key with blanks":   {key: []byte(" k "), value: []byte("v")},
	"key of a language": {key: []byte("Zoë 🦀"), value: []byte("v")},
	"all bytes": {
		key: allBytes(), value: allBytes(),
		headers: []records.Header{header(string(allBytes()[1:]), allBytes())},
	},
	"injection": {
		key: []byte("k\r\nX-Evil: 1"), value: []byte("v"),
		headers: []records.Header{
			header("x\r\nX-Evil", []byte("1")),
			header("y", []byte("1\r\nX-Evil: 1\r\n\r\nHTTP/1.1 200 OK")),
		},
	},
	"repeated": {
		value: []byte("v"),
		headers: []records.Header{
			header("h", []byte("1")), header("h", []byte("2")), header("h", nil),
			header("h", []byte{}),
		},
	},
	"not in order": {value: []byte("v"), headers: []records.Header{header("z", []byte("1")), header("a", []byte("2"))}},
	"upper case": {
		value:   []byte("v"),
		headers: []records.Header{header("Content-Length", []byte("9999")), header("Trace", []byte("ö"))},
	},
	"no name":        {value: []byte("v"), headers: []records.Header{header("", []byte("1"))}},
	"name not UTF-8": {value: []byte("v"), headers: []records.Header{header("\xff\xfe", []byte("1"))}},
	"origin":         {value: []byte("v"), headers: []records.Header{header(engine.OriginProperty, []byte("1:2:0"))}},
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func (w *harness) kafkaTopic(local string) *messaging.KafkaTopic {
	w.T.Helper()
	t, err := w.Broker.Kafka.KafkaTopic(w.T.Context(), names.Topic{Namespace: names.PublicDefault, Local: local})
	if err != nil {
		w.T.Fatal(err)
	}
	return t
}

// write appends records in one batch, as a Kafka producer does.
func (w *harness) write(topic string, list ...record) {
	w.T.Helper()
	b := records.NewBuilder(nil, 0)
	for i, r := range list {
		b.Add(&records.Record{
			Delta: int32(i), Time: 1700000000000 + int64(i), Key: r.key, Value: r.value,
			Headers: r.headers,
		})
	}
	placed, err := w.kafkaTopic(topic).Append(w.T.Context(), 0, b.Finish(), messaging.Sender{})
	if err == nil {
		err = placed.Wait(w.T.Context())
	}
	if err != nil {
		w.T.Fatal(err)
	}
}

// read returns a topic's messages as a Kafka consumer gets them.
func (w *harness) read(topic string) []record {
	w.T.Helper()
	var all []record
	_, err := w.kafkaTopic(topic).Read(w.T.Context(), 0, 0, func(s *engine.StoredValue) (bool, error) {
		if s.Run.Count > 0 {
			return true, records.Walk(s.Run.Body, nil, func(_ int32, r *records.Record) error {
				all = append(all, record{slices.Clone(r.Key), slices.Clone(r.Value), nil})
				return nil
			})
		}
		m := &s.Record.Message
		r := record{value: append([]byte{}, m.Payload...)}
		if m.NullPayload {
			r.value = nil
		}
		if m.Key != "" || m.EmptyKey {
			r.key = []byte(m.Key)
		}
		for _, p := range m.Properties {
			h := header(p.Key, []byte(p.Value))
			if p.Null {
				h.Value = nil
			}
			r.headers = append(r.headers, h)
		}
		all = append(all, r)
		return true, nil
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return all
}

// TestRecordsOverHTTP: an HTTP consumer gets Kafka records unchanged, and an HTTP
// producer can produce the same records again; with headers, JSON and events.
func TestRecordsOverHTTP(t *testing.T) {
	t.Parallel()
	for name, want := range oddRecords {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t, messaging.Options{})
			topic := w.CreateTopic("in", 0)
			w.CreateTopic("headers", 0)
			w.CreateTopic("json", 0)
			w.write("in", want, want, want)

			one := w.Call("POST", topic+"/s/message", "").WantStatus(200).WantHeaders("X-Evil", "", "X-Msg-Event-Time",
				"1700000000000")
			if one.Body != string(want.value) {
				t.Errorf("body: got %q, want %q", one.Body, want.value)
			}
			w.Call("POST", root+"public/default/headers/message", one.Body,
				producerHeaders(one.Header)...).WantStatus(201)

			many := w.Call("POST", topic+"/s/messages", `{"maxMessages":1}`).WantStatus(200)
			w.Call("POST", root+"public/default/json/messages", many.Body).WantStatus(201)
			event := w.event(topic + "/tail?from=earliest")
			w.Call("POST", root+"public/default/json/messages", `{"messages":[`+event+`]}`).WantStatus(201)

			for topic, n := range map[string]int{"headers": 1, "json": 2} {
				got := w.read(topic)
				if len(got) != n {
					t.Fatalf("%s: got %d records, want %d", topic, len(got), n)
				}
				for i := range got {
					if !reflect.DeepEqual(got[i], want) {
						t.Errorf("%s: got record %q, want %q", topic, got[i], want)
					}
				}
			}
		})
	}
}

// producerHeaders returns the metadata headers of a consumed message that a producer can send.
func producerHeaders(h http.Header) (pairs []string) {
	for name, values := range h {
		if strings.HasPrefix(name, "X-Msg-") && !strings.HasSuffix(name, "-Id") && !strings.HasSuffix(name, "-Time") {
			for _, v := range values {
				pairs = append(pairs, name, v)
			}
		}
	}
	return pairs
}

// event returns the first message of a stream.
func (w *harness) event(path string) string {
	w.T.Helper()
	req, err := http.NewRequestWithContext(w.T.Context(), "GET", w.Server.URL+path, http.NoBody)
	if err != nil {
		w.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.Token)
	res, err := w.Server.Client().Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return data
		}
	}
	w.T.Fatalf("%s: stream ended without a message: %v", path, lines.Err())
	return ""
}

// TestRecordForms checks the headers and JSON of docs/spec/messages.md#metadata.
func TestRecordForms(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	w.write("t",
		record{
			key:     []byte{0xff},
			headers: []records.Header{header("ok", []byte("fits")), header("Not", nil), header("\xff", []byte("x"))},
		},
		record{key: []byte{}, value: []byte{}},
		record{key: []byte("k"), value: []byte("v"), headers: []records.Header{header("a", []byte("1"))}},
		record{key: []byte("k"), value: []byte("v"), headers: []records.Header{header("big", make([]byte, 16<<10))}},
	)
	first := w.Call("POST", topic+"/s/message", "").WantStatus(200).WantBody("").WantHeaders(
		"X-Msg-Null-Value", "true", "X-Msg-Partition-Key", "/w==", "X-Msg-Partition-Key-Encoding", "base64",
		"X-Msg-Property-ok", "fits",
		"X-Msg-Property-Not", "", "X-Msg-Properties", "")
	list, err := base64.StdEncoding.DecodeString(first.Header.Get("X-Msg-Record-Headers"))
	if want := `[["ok","Zml0cw=="],["Not",null],["/w==","eA==","base64"]]`; err != nil || string(list) != want {
		t.Errorf("X-Msg-Record-Headers: got %s, %v, want %s", list, err, want)
	}
	second := w.Call("POST", topic+"/s/message", "").WantStatus(200).WantBody("").WantHeaders("X-Msg-Null-Value", "",
		"X-Msg-Partition-Key-Encoding", "base64")
	if got := second.Header["X-Msg-Partition-Key"]; !slices.Equal(got, []string{""}) {
		t.Errorf("header of an empty key: got %q, want one empty header", got)
	}
	w.Call("POST", topic+"/s/message", "").WantStatus(200).WantHeaders("X-Msg-Partition-Key", "k",
		"X-Msg-Partition-Key-Encoding",
		"", "X-Msg-Property-a", "1", "X-Msg-Record-Headers", "")
	w.Call("POST", topic+"/s/message", "").WantStatus(200).WantHeaders("X-Msg-Metadata-Omitted", "true",
		"X-Msg-Partition-Key", "",
		"X-Msg-Record-Headers", "", "X-Msg-Property-big", "")

	w.Call("PUT", "/admin/v2/persistent/public/default/t/subscription/j", `"earliest"`).WantStatus(204)
	var got struct {
		Messages []struct {
			Payload, Encoding, Key, KeyEncoding string
			NullValue                           bool
			Headers                             json.RawMessage
			Properties                          map[string]string
		}
	}
	w.Call("POST", topic+"/j/messages", `{"encoding":"text"}`).WantStatus(200).Decode(&got)
	if m := got.Messages[0]; !m.NullValue || m.Payload != "" || m.Key != "/w==" || m.KeyEncoding != "base64" ||
		string(m.Headers) != string(list) || m.Properties["ok"] != "fits" {
		t.Errorf("first in JSON: got %+v, want null, the key in base64 and headers %s", m, list)
	}
	if m := got.Messages[2]; m.Key != "k" || m.KeyEncoding != "" || m.Headers != nil {
		t.Errorf("third in JSON: got %+v, want a text key and no headers", m)
	}
	if m := got.Messages[3]; m.Key != "k" || len(m.Properties["big"]) != 16<<10 {
		t.Errorf("fourth in JSON: got key %q and %d bytes of properties, want k and %d", m.Key,
			len(m.Properties["big"]), 16<<10)
	}
}

// TestInvalidRecordForms: invalid metadata is rejected and nothing is stored.
func TestInvalidRecordForms(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	many := "[" + strings.Repeat(`["a",null],`, 256) + `["a",null]]`
	for _, tc := range []struct {
		name, body string
		headers    []string
	}{
		{"value and none", "x", []string{"X-Msg-Null-Value", "true"}},
		{"flag", "", []string{"X-Msg-Null-Value", "yes"}},
		{"encoding", "x", []string{"X-Msg-Partition-Key", "k", "X-Msg-Partition-Key-Encoding", "hex"}},
		{"not base64", "x", []string{"X-Msg-Partition-Key", "§", "X-Msg-Partition-Key-Encoding", "base64"}},
		{"encoding without key", "x", []string{"X-Msg-Partition-Key-Encoding", "base64"}},
		{"list not base64", "x", []string{"X-Msg-Record-Headers", "["}},
		{"list not JSON", "x", []string{"X-Msg-Record-Headers", encoded("[")}},
		{"no list", "x", []string{"X-Msg-Record-Headers", encoded("null")}},
		{"object", "x", []string{"X-Msg-Record-Headers", encoded(`{"a":"b"}`)}},
		{"one element", "x", []string{"X-Msg-Record-Headers", encoded(`[["a"]]`)}},
		{"four elements", "x", []string{"X-Msg-Record-Headers", encoded(`[["a","","base64",1]]`)}},
		{"name of null", "x", []string{"X-Msg-Record-Headers", encoded(`[[null,""]]`)}},
		{"value of number", "x", []string{"X-Msg-Record-Headers", encoded(`[["a",1]]`)}},
		{"value not base64", "x", []string{"X-Msg-Record-Headers", encoded(`[["a","§"]]`)}},
		{"name not base64", "x", []string{"X-Msg-Record-Headers", encoded(`[["§","","base64"]]`)}},
		{"other encoding", "x", []string{"X-Msg-Record-Headers", encoded(`[["a","","hex"]]`)}},
		{"hidden name", "x", []string{"X-Msg-Record-Headers", encoded(`[["\u0000producer",""]]`)}},
		{"too many", "x", []string{"X-Msg-Record-Headers", encoded(many)}},
		{"too large", "x", []string{"X-Msg-Record-Headers", encoded(`[["a","` + strings.Repeat("A", 12<<10) + `"]]`)}},
	} {
		if r := w.Call("POST", topic+"/message", tc.body, tc.headers...); r.Status != 400 {
			t.Errorf("%s: got status %d %s, want 400", tc.name, r.Status, r.Body)
		}
	}
	for _, message := range []string{
		`{"nullValue":true,"payload":"eA=="}`, `{"keyEncoding":"base64"}`, `{"key":"k","keyEncoding":"hex"}`,
		`{"key":"§","keyEncoding":"base64"}`,
		`{"headers":{}}`, `{"headers":[[]]}`, `{"headers":` + many + `}`, `{"properties":{"":"x"}}`,
		`{"properties":{"a\nb":"x"}}`,
	} {
		if r := w.Call("POST", topic+"/messages", `{"messages":[`+message+`]}`); r.Status != 400 {
			t.Errorf("%s: got status %d %s, want 400", message, r.Status, r.Body)
		}
	}
	if got := w.read("t"); len(got) != 0 {
		t.Errorf("stored messages: got %d, want none", len(got))
	}
}

// TestCompactedTopicNeedsKeys: producing to a compacted topic needs a key, over HTTP as
// over the Kafka protocol.
func TestCompactedTopicNeedsKeys(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	name := names.Topic{Namespace: names.PublicDefault, Local: "t"}
	if _, err := w.Broker.Kafka.CreateKafkaTopic(t.Context(), name, 1, map[string]string{"cleanup.policy": "compact"},
		false); err != nil {
		t.Fatal(err)
	}
	topic := root + "public/default/t"
	w.Call("POST", topic+"/message", "x").WantStatus(400)
	w.Call("POST", topic+"/message", "x", "X-Msg-Partition-Key", "k").WantStatus(201)
	w.Call("POST", topic+"/message", "", "X-Msg-Null-Value", "true", "X-Msg-Partition-Key", "",
		"X-Msg-Partition-Key-Encoding", "base64").WantStatus(201)
	w.Call("POST", topic+"/messages", `{"messages":[{"payload":"eA=="},{"payload":"eA==","key":"k"}]}`).WantStatus(207)
	if got := w.read("t"); len(got) != 3 || got[1].key == nil || got[1].value != nil {
		t.Errorf("got records %q, want three, the second with an empty key and no value", got)
	}
}

// oneID is a registry in which every subject has the same single id.
type oneID int32

func (r oneID) SubjectHasID(_ context.Context, _ string, id int32) (bool, error) {
	return id == int32(r), nil
}

func (oneID) RecordNames(context.Context, int32) ([]string, error) { return nil, nil }

func (oneID) PayloadSchema(context.Context, int32) (*filter.Schema, error) { return nil, nil }

// TestSchemaIDsOfRecords: consumers get the schema id of a message; a null message needs
// none.
func TestSchemaIDsOfRecords(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{Schemas: oneID(7)})
	topic := w.CreateTopic("t", 0)
	w.Call("PUT", "/admin/v2/persistent/public/default/t/properties",
		`{"kop.stream.value.schema.validation":"true"}`).WantStatus(204)
	value := "\x00\x00\x00\x00\x07data"
	w.write("t", record{key: []byte("k"), value: []byte(value)}, record{key: []byte("k")})
	w.Call("POST", topic+"/message", value).WantStatus(201)
	w.Call("POST", topic+"/message", "", "X-Msg-Null-Value", "true", "X-Msg-Partition-Key", "k").WantStatus(201)
	w.Call("POST", topic+"/message", "").WantStatus(400)
	for i, want := range []string{"7", "", "7", ""} {
		got := w.Call("POST", topic+"/s/message", "").WantStatus(200).WantHeaders("X-Msg-Schema-Id", want)
		if (want == "") != (got.Header.Get("X-Msg-Null-Value") == "true") {
			t.Errorf("message %d: got X-Msg-Null-Value %q with schema id %q", i, got.Header.Get("X-Msg-Null-Value"),
				want)
		}
	}
	w.Call("PUT", "/admin/v2/persistent/public/default/t/subscription/j", `"earliest"`).WantStatus(204)
	var got struct{ Messages []struct{ SchemaID int32 } }
	w.Call("POST", topic+"/j/messages", "").WantStatus(200).Decode(&got)
	if ids := fmt.Sprint(got.Messages); ids != "[{7} {0} {7} {0}]" {
		t.Errorf("schema ids in JSON: got %s, want 7, none, 7, none", ids)
	}
}

// TestAttackLargeHeaders: the size limit of one consume call includes the decompressed
// keys and headers of records, not only their values.
func TestAttackLargeHeaders(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	much := bytes.Repeat([]byte("x"), 900_000)
	const rounds, most = 5, 20 << 20 // 8 MiB and one message, in base64
	for range rounds {
		var batch []record
		for range 4 {
			batch = append(batch,
				record{key: much, value: []byte("v"), headers: []records.Header{{Key: []byte("h"), Value: much}}})
		}
		w.write("t", batch...)
	}
	attempts, successes, got := 0, 0, 0
	for got < 4*rounds {
		response := w.Call("POST", topic+"/s/messages", `{"maxMessages":1000}`).WantStatus(200)
		var list struct{ Messages []json.RawMessage }
		response.Decode(&list)
		if len(list.Messages) == 0 {
			t.Fatalf("got %d messages, want %d", got, 4*rounds)
		}
		got += len(list.Messages)
		attempts++
		size := 0
		for _, m := range list.Messages {
			size += len(m)
		}
		if size > most {
			successes++
			t.Errorf("one call returned %d bytes, want at most %d", size, most)
		}
	}
	tally.Attack(t, "receive: messages with little payload and large keys and headers", attempts, successes)
}
