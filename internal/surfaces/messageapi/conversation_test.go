package messageapi_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/brokerhttp/brokertest"
)

const orderRecord = `{"type":"record","name":"Order","fields":[` +
	`{"name":"id","type":"string"},{"name":"n","type":"int","default":0}]}`

// TestSpecificationExample makes the calls in the order of docs/spec/messages.md: schema,
// subscription, produce, consume, acknowledge. It does so for several schema types, with
// and without partitions, with and without a domain in the path.
func TestSpecificationExample(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct{ name, schema, payload string }{
		{"STRING", "", "hello, world"},
		{"JSON", orderRecord, `{"id":"a","n":1}`},
		{"AVRO", orderRecord, "\x02a\x02"},
		{"PROTOBUF", orderRecord, "\x0a\x01a\x10\x01"},
	} {
		for _, partitions := range []int{0, 3} {
			for _, domain := range []string{"", "persistent/"} {
				t.Run(fmt.Sprintf("%s/%d partitions/%s", kind.name, partitions, domain), func(t *testing.T) {
					t.Parallel()
					w := newHarness(t, messaging.Options{})
					w.converse(kind.name, kind.schema, kind.payload, partitions, domain)
				})
			}
		}
	}
}

func (w *harness) converse(kind, schema, payload string, partitions int, domain string) {
	w.T.Helper()
	if partitions > 0 {
		w.Call("PUT", "/admin/v2/persistent/public/default/orders/partitions", fmt.Sprint(partitions)).WantStatus(204)
	}
	body := fmt.Sprintf(`{"type":%q,"schema":%q,"properties":{}}`, kind, schema)
	w.Call("POST", "/admin/v2/schemas/public/default/orders/schema", body, "Accept", "application/json", "Content-Type",
		"application/json").
		WantStatus(200).WantBody(`{"version":{"version":0}}`)
	w.Call("PUT", "/admin/v2/persistent/public/default/orders/subscription/sub", "", "Accept", "application/json",
		"Content-Type", "application/json").
		WantStatus(204).WantBody("")
	topic := root + domain + "public/default/orders"
	produced := w.Call("POST", topic+"/message", payload,
		"Accept", "application/json", "Content-Type", "application/octet-stream",
		"X-Msg-Long-Schema-Version", "0", "X-Msg-Sequence-Id", "42", "X-Msg-Event-Time", "1700000000000",
		"X-Msg-Property-color", "blue", "X-Msg-Partition-Key", "order-42").WantStatus(201)
	produced.WantHeaders("Content-Type", "application/json")
	text := produced.Header.Get("X-Msg-Message-String-Id")
	produced.WantBody(`"` + text + `"`)
	partition := "-1"
	if partitions > 0 {
		partition = "2" // murmur3 of order-42, modulo three
	}
	if parts := strings.Split(text, ":"); len(parts) != 4 || parts[1] != "0" || parts[2] != partition ||
		parts[3] != "0" {
		w.T.Errorf("got message id %s, want four parts with entry 0, partition %s, batch index 0", text, partition)
	}
	got := w.Call("POST", topic+"/sub/message", `{"timeoutMillis":3000}`, "Accept", "application/octet-stream",
		"Content-Type", "application/json").
		WantStatus(200).WantBody(payload)
	got.WantHeaders(
		"Content-Type", "application/octet-stream", "X-Msg-Message-String-Id", text, "X-Msg-Message-Id",
		produced.MessageID(),
		"X-Msg-Long-Schema-Version", "0", "X-Msg-Base64-Schema-Version", "AAAAAAAAAAA=", "X-Msg-Sequence-Id", "42",
		"X-Msg-Event-Time", "1700000000000", "X-Msg-Property-color", "blue", "X-Msg-Partition-Key", "order-42",
		"X-Msg-Redelivery-Count", "0", "Content-Length", fmt.Sprint(len(payload)))
	w.Call("PUT", topic+"/sub/message", strings.TrimRight(got.MessageID(), "="), "Accept", "application/json",
		"Content-Type",
		"application/json").
		WantStatus(204).WantBody("")
	w.Call("POST", topic+"/sub/message", `{"timeoutMillis":0}`).WantStatus(204)
}

func TestProduceReturnsPlainTextOnRequest(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	w.Call("PUT", "/admin/v2/persistent/public/default/t", "").WantStatus(204)
	r := w.Call("POST", root+"public/default/t/message", "x", "Accept", "text/plain").WantStatus(201)
	r.WantBody(r.Header.Get("X-Msg-Message-String-Id"))
	for _, accept := range []string{"", "*/*", "application/octet-stream", "application/json, text/plain", "nonsense"} {
		r := w.Call("POST", root+"public/default/t/message", "x", "Accept", accept).WantStatus(201)
		r.WantBody(`"` + r.Header.Get("X-Msg-Message-String-Id") + `"`)
	}
}

func TestAckForms(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	for name, form := range map[string]func(r *brokertest.Response) string{
		"raw":             func(r *brokertest.Response) string { return r.MessageID() },
		"quoted":          func(r *brokertest.Response) string { return `"` + r.MessageID() + `"` },
		"without padding": func(r *brokertest.Response) string { return strings.TrimRight(r.MessageID(), "=") },
		"quoted, without": func(r *brokertest.Response) string {
			return `"` +
				strings.TrimRight(r.MessageID(), "=") + `"`
		},
		"with newline":    func(r *brokertest.Response) string { return r.MessageID() + "\n" },
		"quoted, newline": func(r *brokertest.Response) string { return ` "` + r.MessageID() + "\"\r\n" },
		"URL alphabet": func(r *brokertest.Response) string {
			return strings.NewReplacer("+", "-", "/",
				"_").Replace(r.MessageID())
		},
		"escaped slashes": func(r *brokertest.Response) string {
			return `"` +
				strings.ReplaceAll(r.MessageID(), "/", `\/`) + `"`
		},
		"four parts": func(r *brokertest.Response) string { return r.Header.Get("X-Msg-Message-String-Id") },
		"four parts, JSON": func(r *brokertest.Response) string {
			return `"` +
				r.Header.Get("X-Msg-Message-String-Id") + `"`
		},
	} {
		w.Call("POST", topic+"/message", name).WantStatus(201)
		got := w.Call("POST", topic+"/s/message", "").WantStatus(200).WantBody(name)
		w.Call("PUT", topic+"/s/message", form(got)).WantStatus(204)
		w.Call("PUT", topic+"/s/message", form(got)).WantStatus(204) // repeating it is no error
		w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(204)
	}
}

func TestInvalidAcks(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	id := w.Call("POST", topic+"/message", "x").WantStatus(201).MessageID()
	for name, tc := range map[string]struct {
		body   string
		status int
	}{
		"empty":            {"", 400},
		"blank":            {"  ", 400},
		"empty string":     {`""`, 400},
		"half a string":    {`"`, 400},
		"number":           {"12", 400},
		"not base64":       {"§", 400},
		"other protobuf":   {base64.StdEncoding.EncodeToString([]byte("hello")), 400},
		"earliest":         {"CP///////////wEQ////////////ATAA", 400},
		"negative":         {"-1:0:-1:0", 400},
		"too many parts":   {"1:2:3:4:5", 400},
		"other topic":      {"99999:0:-1:0", 404},
		"latest":           {"CP//////////fxD//////////38wAA==", 404},
		"not there yet":    {strings.Replace(w.stringID(id), ":0:", ":7:", 1), 404},
		"partition":        {strings.Replace(w.stringID(id), ":-1:", ":1:", 1), 404},
		"object":           {`{"messageId":"x"}`, 400},
		"far too long":     {strings.Repeat("A", 70<<10), 413},
		"deep JSON string": {`"` + strings.Repeat(`\"`, 1000) + `"`, 400},
	} {
		if r := w.Call("PUT", topic+"/s/message", tc.body); r.Status != tc.status {
			t.Errorf("%s: got status %d, want %d: %s", name, r.Status, tc.status, r.Body)
		}
	}
	w.Call("PUT", topic+"/nobody/message", id).WantStatus(404)
	w.Call("PUT", root+"public/default/nothing/s/message", id).WantStatus(404)
	w.Call("POST", topic+"/s/message", "").WantStatus(200) // none of these calls acknowledged the message
}

// stringID converts a message id from the base64 form to the string form.
func (w *harness) stringID(id string) string {
	w.T.Helper()
	parsed, err := brokerhttp.ParseID([]byte(id))
	if err != nil {
		w.T.Fatal(err)
	}
	return parsed.String()
}

func TestConsumeBody(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	for body, status := range map[string]int{
		`{"timeoutMillis":0}`:                             204,
		`{ "timeoutMillis" : 1 }`:                         204,
		`{"timeoutMillis":1,"unknown":[{}]}`:              204,
		`{"timeoutMillis":1,"ackTimeoutMillis":1000}`:     204,
		`{"timeoutMillis":-1}`:                            400,
		`{"timeoutMillis":1.5}`:                           400,
		`{"timeoutMillis":"1"}`:                           400,
		`{"timeoutMillis":1e99}`:                          400,
		`{"timeoutMillis":99999999999999999999}`:          400,
		`{"timeoutMillis":01}`:                            400,
		`{"timeoutMillis":}`:                              400,
		`{"timeoutMillis":1`:                              400,
		`{"timeoutMillis":1}{}`:                           400,
		`{"timeoutMillis":1,"ackTimeoutMillis":0}`:        400,
		`{"timeoutMillis":1,"ackTimeoutMillis":1}`:        400,
		`{"timeoutMillis":1,"ackTimeoutMillis":43200001}`: 400,
		`[]`:                                    400,
		`"x"`:                                   400,
		`hello`:                                 400,
		strings.Repeat("[", 65<<10):             413,
		strings.Repeat("[", 60<<10):             400,
		`{"a":` + strings.Repeat(`{"a":`, 5000): 400,
	} {
		if r := w.Call("POST", topic+"/s/message", body); r.Status != status {
			t.Errorf("%.60s: got status %d, want %d: %s", body, r.Status, status, r.Body)
		}
	}
	w.Call("POST", topic+"/message", "x").WantStatus(201)
	for _, body := range []string{"", "{}", "null", " "} { // each waits by default and gets the message immediately
		got := w.Call("POST", topic+"/s/message", body).WantStatus(200).WantBody("x")
		w.Call("POST", topic+"/s/message/nack", got.MessageID()).WantStatus(204)
	}
	w.Call("POST", topic+"/nobody/message", `{"timeoutMillis":0}`).WantStatus(404)
	w.Call("POST", root+"public/default/nothing/s/message", "").WantStatus(404)
}

func TestProduceHeaders(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	w.Call("POST", "/admin/v2/schemas/public/default/with/schema", `{"type":"STRING","schema":""}`).WantStatus(200)
	with := root + "public/default/with"
	long := strings.Repeat("x", 9<<10)
	properties := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tc := range []struct {
		name    string
		topic   string
		headers []string
		status  int
	}{
		{"nothing", topic, nil, 201},
		{"sequence", topic, []string{"X-Msg-Sequence-Id", "18446744073709551615"}, 201},
		{"negative sequence", topic, []string{"X-Msg-Sequence-Id", "-1"}, 400},
		{"large sequence", topic, []string{"X-Msg-Sequence-Id", "18446744073709551616"}, 400},
		{"word for sequence", topic, []string{"X-Msg-Sequence-Id", "one"}, 400},
		{"empty sequence", topic, []string{"X-Msg-Sequence-Id", ""}, 400},
		{"event time", topic, []string{"X-Msg-Event-Time", "0"}, 201},
		{"negative event time", topic, []string{"X-Msg-Event-Time", "-5"}, 400},
		{"event time in words", topic, []string{"X-Msg-Event-Time", "2024-01-01T00:00:00Z"}, 400},
		{"schema of a topic without", topic, []string{"X-Msg-Long-Schema-Version", "0"}, 404},
		{"schema", with, []string{"X-Msg-Long-Schema-Version", "0"}, 201},
		{"schema in base64", with, []string{"X-Msg-Base64-Schema-Version", "AAAAAAAAAAA="}, 201},
		{"schema in bad base64", with, []string{"X-Msg-Base64-Schema-Version", "AAAA"}, 400},
		{"unknown schema", with, []string{"X-Msg-Long-Schema-Version", "1"}, 404},
		{"fraction of a schema", with, []string{"X-Msg-Long-Schema-Version", "0.0"}, 400},
		{"negative schema", with, []string{"X-Msg-Long-Schema-Version", "-1"}, 400},
		{"X-Pulsar", with, []string{"X-Pulsar-Long-Schema-Version", "1"}, 404},
		{"X-Msg wins", with, []string{"X-Pulsar-Long-Schema-Version", "1", "X-Msg-Long-Schema-Version", "0"}, 201},
		{"delay", topic, []string{"X-Msg-Deliver-After-Ms", "1"}, 201},
		{"delay for ever", topic, []string{"X-Msg-Deliver-After-Ms", "9223372036854775807"}, 400},
		{"negative delay", topic, []string{"X-Msg-Deliver-After-Ms", "-1"}, 400},
		{"two delays", topic, []string{"X-Msg-Deliver-After-Ms", "1", "X-Msg-Deliver-At", "1"}, 400},
		{"properties", topic, []string{"X-Msg-Properties", properties(`{"A":"ü"}`)}, 201},
		{"properties of no base64", topic, []string{"X-Msg-Properties", "{}"}, 400},
		{"properties of no JSON", topic, []string{"X-Msg-Properties", properties(`{"A"`)}, 400},
		{"properties of no strings", topic, []string{"X-Msg-Properties", properties(`{"A":1}`)}, 400},
		{"property with control", topic, []string{"X-Msg-Properties", properties(`{"\u0000producer":"x"}`)}, 400},
		{"property without name", topic, []string{"X-Msg-Properties", properties(`{"":"x"}`)}, 400},
		{"long property", topic, []string{"X-Msg-Property-a", long}, 400},
		{"long key", topic, []string{"X-Msg-Partition-Key", long}, 400},
		{"key of no UTF-8", topic, []string{"X-Msg-Partition-Key", "\xff"}, 400},
		{"long idempotency key", topic, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400},
		{"unknown header", topic, []string{"X-Msg-Whatever", "1"}, 201},
	} {
		if r := w.Call("POST", tc.topic+"/message", "x", tc.headers...); r.Status != tc.status {
			t.Errorf("%s: got status %d, want %d: %s", tc.name, r.Status, tc.status, r.Body)
		}
	}
}

func TestPropertiesBothWays(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	exact := base64.StdEncoding.EncodeToString([]byte(`{"Exact":"größe","plain":"wins"}`))
	w.Call("POST", topic+"/message", "x", "X-Msg-Property-Color", "blue", "X-Pulsar-Property-Shape", "round",
		"X-Msg-Property-Plain", "loses", "X-Msg-Properties", exact).WantStatus(201)
	got := w.Call("POST", topic+"/s/message", "").WantStatus(200)
	got.WantHeaders("X-Msg-Property-color", "blue", "X-Msg-Property-shape", "round", "X-Msg-Property-plain", "wins")
	all, err := base64.StdEncoding.DecodeString(got.Header.Get("X-Msg-Properties"))
	if err != nil || string(all) != `{"Exact":"größe","color":"blue","plain":"wins","shape":"round"}` {
		t.Errorf("X-Msg-Properties: got %s, %v, want %s", all, err,
			`{"Exact":"größe","color":"blue","plain":"wins","shape":"round"}`)
	}
	// Properties that headers represent exactly are sent in headers only.
	w.Call("POST", topic+"/message", "x", "X-Msg-Property-color", "blue").WantStatus(201)
	w.Call("POST", topic+"/s/message", "").WantStatus(200).WantHeaders("X-Msg-Property-color", "blue",
		"X-Msg-Properties", "",
		"X-Msg-Event-Time", "", "X-Msg-Partition-Key", "", "X-Msg-Long-Schema-Version", "")
}

func TestMessageSizes(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	w.Call("POST", topic+"/message", strings.Repeat("x", 5<<20)).WantStatus(201)
	w.Call("POST", topic+"/message", strings.Repeat("x", 5<<20+1)).WantStatus(413)
	w.Call("POST", topic+"/message", "").WantStatus(201)
	if got := w.Call("POST", topic+"/s/message", "").WantStatus(200); len(got.Body) != 5<<20 {
		t.Errorf("got %d bytes, want %d", len(got.Body), 5<<20)
	}
	w.Call("POST", topic+"/s/message", "").WantStatus(200).WantBody("").WantHeaders("Content-Length", "0")
	w.Call("POST", "/admin/v2/persistent/public/default/t/maxMessageSize", "10").WantStatus(204)
	w.Call("POST", topic+"/message", "12345678901").WantStatus(413)
}

func TestRedelivery(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	w.Call("POST", topic+"/message", "x").WantStatus(201)
	first := w.Call("POST", topic+"/s/message", "").WantStatus(200)
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(204) // the message is leased
	w.Call("POST", topic+"/s/message/nack",
		fmt.Sprintf(`{"messageId":%q,"delayMillis":0}`, first.MessageID())).WantStatus(204)
	second := w.Call("POST", topic+"/s/message", "").WantStatus(200).WantHeaders("X-Msg-Redelivery-Count", "1")
	w.Call("POST", topic+"/s/message/extend",
		fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":60000}`, second.MessageID())).WantStatus(204)
	for name, body := range map[string]string{
		"extend without a time": fmt.Sprintf("%q", second.MessageID()),
		"extend for a moment":   fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":1}`, second.MessageID()),
		"extend for a day":      fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":86400000}`, second.MessageID()),
		"extend nothing":        `{"ackTimeoutMillis":1000}`,
	} {
		if r := w.Call("POST", topic+"/s/message/extend", body); r.Status != 400 {
			t.Errorf("%s: got status %d: %s, want 400", name, r.Status, r.Body)
		}
	}
	w.Call("POST", topic+"/s/message/nack",
		fmt.Sprintf(`{"messageId":%q,"delayMillis":-1}`, second.MessageID())).WantStatus(400)
	// A late acknowledgement by the first receiver wins.
	w.Call("PUT", topic+"/s/message", first.MessageID()).WantStatus(204)
	w.Call("POST", topic+"/s/message/nack", second.MessageID()).WantStatus(409)
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(204)
}
