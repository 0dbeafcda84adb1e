package messageapi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"freshet/internal/messaging"
)

const orderRecord = `{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"n","type":"int","default":0}]}`

// TestTheSpecsOwnOrder follows spec 2's usage: schema, subscription, produce,
// consume, acknowledge; for every kind of topic it names, with and without
// partitions, with and without a domain in the path.
func TestTheSpecsOwnOrder(t *testing.T) {
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
					w := newWorld(t, messaging.Options{})
					w.converse(kind.name, kind.schema, kind.payload, partitions, domain)
				})
			}
		}
	}
}

func (w *world) converse(kind, schema, payload string, partitions int, domain string) {
	w.t.Helper()
	if partitions > 0 {
		w.call("PUT", "/admin/v2/persistent/public/default/orders/partitions", fmt.Sprint(partitions)).want(204)
	}
	body := fmt.Sprintf(`{"type":%q,"schema":%q,"properties":{}}`, kind, schema)
	w.call("POST", "/admin/v2/schemas/public/default/orders/schema", body, "Accept", "application/json", "Content-Type", "application/json").
		want(200).is(`{"version":{"version":0}}`)
	w.call("PUT", "/admin/v2/persistent/public/default/orders/subscription/sub", "", "Accept", "application/json", "Content-Type", "application/json").
		want(204).is("")
	topic := root + domain + "public/default/orders"
	produced := w.call("POST", topic+"/message", payload,
		"Accept", "application/json", "Content-Type", "application/octet-stream",
		"X-Msg-Long-Schema-Version", "0", "X-Msg-Sequence-Id", "42", "X-Msg-Event-Time", "1700000000000",
		"X-Msg-Property-color", "blue", "X-Msg-Partition-Key", "order-42").want(201)
	produced.says("Content-Type", "application/json")
	text := produced.header.Get("X-Msg-Message-String-Id")
	produced.is(`"` + text + `"`)
	partition := "-1"
	if partitions > 0 {
		partition = "2" // murmur3 of order-42, modulo three
	}
	if parts := strings.Split(text, ":"); len(parts) != 4 || parts[1] != "0" || parts[2] != partition || parts[3] != "0" {
		w.t.Errorf("id %s", text)
	}
	got := w.call("POST", topic+"/sub/message", `{"timeoutMillis":3000}`, "Accept", "application/octet-stream", "Content-Type", "application/json").
		want(200).is(payload)
	got.says(
		"Content-Type", "application/octet-stream", "X-Msg-Message-String-Id", text, "X-Msg-Message-Id", produced.id(),
		"X-Msg-Long-Schema-Version", "0", "X-Msg-Base64-Schema-Version", "AAAAAAAAAAA=", "X-Msg-Sequence-Id", "42",
		"X-Msg-Event-Time", "1700000000000", "X-Msg-Property-color", "blue", "X-Msg-Partition-Key", "order-42",
		"X-Msg-Redelivery-Count", "0", "Content-Length", fmt.Sprint(len(payload)))
	w.call("PUT", topic+"/sub/message", strings.TrimRight(got.id(), "="), "Accept", "application/json", "Content-Type", "application/json").
		want(204).is("")
	w.call("POST", topic+"/sub/message", `{"timeoutMillis":0}`).want(204)
}

func TestProduceAnswersPlainTextOnRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	w.call("PUT", "/admin/v2/persistent/public/default/t", "").want(204)
	r := w.call("POST", root+"public/default/t/message", "x", "Accept", "text/plain").want(201)
	r.is(r.header.Get("X-Msg-Message-String-Id"))
	for _, accept := range []string{"", "*/*", "application/octet-stream", "application/json, text/plain", "nonsense"} {
		r := w.call("POST", root+"public/default/t/message", "x", "Accept", accept).want(201)
		r.is(`"` + r.header.Get("X-Msg-Message-String-Id") + `"`)
	}
}

// ready makes a topic with a subscription at its start.
func (w *world) ready(topic string, partitions int) string {
	w.t.Helper()
	path := "/admin/v2/persistent/public/default/" + topic
	if partitions > 0 {
		w.call("PUT", path+"/partitions", fmt.Sprint(partitions)).want(204)
	} else {
		w.call("PUT", path, "").want(204)
	}
	w.call("PUT", path+"/subscription/s", `"earliest"`).want(204)
	return root + "public/default/" + topic
}

func TestAckForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	for name, form := range map[string]func(r *reply) string{
		"raw":              func(r *reply) string { return r.id() },
		"quoted":           func(r *reply) string { return `"` + r.id() + `"` },
		"without padding":  func(r *reply) string { return strings.TrimRight(r.id(), "=") },
		"quoted, without":  func(r *reply) string { return `"` + strings.TrimRight(r.id(), "=") + `"` },
		"with newline":     func(r *reply) string { return r.id() + "\n" },
		"quoted, newline":  func(r *reply) string { return ` "` + r.id() + "\"\r\n" },
		"URL alphabet":     func(r *reply) string { return strings.NewReplacer("+", "-", "/", "_").Replace(r.id()) },
		"escaped slashes":  func(r *reply) string { return `"` + strings.ReplaceAll(r.id(), "/", `\/`) + `"` },
		"four parts":       func(r *reply) string { return r.header.Get("X-Msg-Message-String-Id") },
		"four parts, JSON": func(r *reply) string { return `"` + r.header.Get("X-Msg-Message-String-Id") + `"` },
	} {
		w.call("POST", topic+"/message", name).want(201)
		got := w.call("POST", topic+"/s/message", "").want(200).is(name)
		w.call("PUT", topic+"/s/message", form(got)).want(204)
		w.call("PUT", topic+"/s/message", form(got)).want(204) // again is no error
		w.call("POST", topic+"/s/message", `{"timeoutMillis":0}`).want(204)
	}
}

func TestAckRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	id := w.call("POST", topic+"/message", "x").want(201).id()
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
		if r := w.call("PUT", topic+"/s/message", tc.body); r.status != tc.status {
			t.Errorf("%s: status %d, want %d: %s", name, r.status, tc.status, r.body)
		}
	}
	w.call("PUT", topic+"/nobody/message", id).want(404)
	w.call("PUT", root+"public/default/nothing/s/message", id).want(404)
	w.call("POST", topic+"/s/message", "").want(200) // nothing of this changed anything
}

// stringID turns the base64 form into the string form by asking for it.
func (w *world) stringID(id string) string {
	w.t.Helper()
	parsed, err := parseID(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return parsed
}

func TestConsumeBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
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
		if r := w.call("POST", topic+"/s/message", body); r.status != status {
			t.Errorf("%.60s: status %d, want %d: %s", body, r.status, status, r.body)
		}
	}
	w.call("POST", topic+"/message", "x").want(201)
	for _, body := range []string{"", "{}", "null", " "} { // each waits by default, and finds something at once
		got := w.call("POST", topic+"/s/message", body).want(200).is("x")
		w.call("POST", topic+"/s/message/nack", got.id()).want(204)
	}
	w.call("POST", topic+"/nobody/message", `{"timeoutMillis":0}`).want(404)
	w.call("POST", root+"public/default/nothing/s/message", "").want(404)
}

func TestProduceHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	w.call("POST", "/admin/v2/schemas/public/default/with/schema", `{"type":"STRING","schema":""}`).want(200)
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
		if r := w.call("POST", tc.topic+"/message", "x", tc.headers...); r.status != tc.status {
			t.Errorf("%s: status %d, want %d: %s", tc.name, r.status, tc.status, r.body)
		}
	}
}

func TestPropertiesBothWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	exact := base64.StdEncoding.EncodeToString([]byte(`{"Exact":"größe","plain":"wins"}`))
	w.call("POST", topic+"/message", "x", "X-Msg-Property-Color", "blue", "X-Pulsar-Property-Shape", "round",
		"X-Msg-Property-Plain", "loses", "X-Msg-Properties", exact).want(201)
	got := w.call("POST", topic+"/s/message", "").want(200)
	got.says("X-Msg-Property-color", "blue", "X-Msg-Property-shape", "round", "X-Msg-Property-plain", "wins")
	all, err := base64.StdEncoding.DecodeString(got.header.Get("X-Msg-Properties"))
	if err != nil || string(all) != `{"Exact":"größe","color":"blue","plain":"wins","shape":"round"}` {
		t.Errorf("X-Msg-Properties is %s, %v", all, err)
	}
	// What headers carry exactly comes in headers only.
	w.call("POST", topic+"/message", "x", "X-Msg-Property-color", "blue").want(201)
	w.call("POST", topic+"/s/message", "").want(200).says("X-Msg-Property-color", "blue", "X-Msg-Properties", "", "X-Msg-Event-Time", "", "X-Msg-Partition-Key", "", "X-Msg-Long-Schema-Version", "")
}

func TestMessageSizes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	w.call("POST", topic+"/message", strings.Repeat("x", 5<<20)).want(201)
	w.call("POST", topic+"/message", strings.Repeat("x", 5<<20+1)).want(413)
	w.call("POST", topic+"/message", "").want(201)
	if got := w.call("POST", topic+"/s/message", "").want(200); len(got.body) != 5<<20 {
		t.Errorf("got %d bytes", len(got.body))
	}
	w.call("POST", topic+"/s/message", "").want(200).is("").says("Content-Length", "0")
	w.call("POST", "/admin/v2/persistent/public/default/t/maxMessageSize", "10").want(204)
	w.call("POST", topic+"/message", "12345678901").want(413)
}

func TestPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	for _, name := range []string{"message", "persistent", "a%2Fb", "a%20b", "gr%C3%B6%C3%9Fe", "a%252Fb", "tail", "x:y=z", "%E2%82%AC"} {
		path := "/admin/v2/persistent/public/default/" + name
		w.call("PUT", path, "").want(204)
		w.call("PUT", path+"/subscription/message", "").want(204)
		for _, domain := range []string{"", "persistent/"} {
			topic := root + domain + "public/default/" + name
			w.call("POST", topic+"/message", name).want(201)
			got := w.call("POST", topic+"/message/message", "").want(200).is(name)
			w.call("PUT", topic+"/message/message/", got.id()).want(204)
		}
	}
	for path, status := range map[string]int{
		"public/default/message":                                    404, // too short
		"persistent/public/default/message":                         404, // no topic
		"public/default/t/s/message/x":                              404,
		"public/default/t/s/messages/nack":                          404,
		"public/default/t":                                          404,
		"":                                                          404,
		"non-persistent/public/default/t/message":                   400,
		"public/default/t%zz/message":                               400,
		"public/default/%20/message":                                400,
		"public/default/%00/message":                                400,
		"pub%20lic/default/t/message":                               400,
		"public/def%2Fault/t/message":                               400,
		"public/default/nothing/message":                            404,
		"public/nothing/t/message":                                  404,
		"nobody/default/t/message":                                  404,
		"public/default/" + strings.Repeat("x", 600) + "/message":   400,
		"public/default/t/" + strings.Repeat("s", 300) + "/message": 400,
		"a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/message":                   404,
	} {
		if strings.Contains(path, "%zz") {
			continue // such a request cannot be made with net/http's client
		}
		if r := w.call("POST", root+path, "x"); r.status != status {
			t.Errorf("%.60s: status %d, want %d: %s", path, r.status, status, r.body)
		}
	}
	w.call("GET", root+"public/default/t/message", "").want(405).says("Allow", "POST")
	w.call("DELETE", root+"public/default/t/s/message", "").want(405).says("Allow", "POST, PUT")
	w.call("PATCH", "/admin/v2/tenants/public", "").want(405).says("Allow", "DELETE, GET, POST, PUT")
	w.call("GET", "/admin/v2/unknown", "").want(404)
	w.call("GET", "/admin/v3/tenants", "").want(404)
	w.call("GET", "/rest-stream/admin/v1/nothing", "").want(404)
}

func TestRedelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	w.call("POST", topic+"/message", "x").want(201)
	first := w.call("POST", topic+"/s/message", "").want(200)
	w.call("POST", topic+"/s/message", `{"timeoutMillis":0}`).want(204) // leased to us
	w.call("POST", topic+"/s/message/nack", fmt.Sprintf(`{"messageId":%q,"delayMillis":0}`, first.id())).want(204)
	second := w.call("POST", topic+"/s/message", "").want(200).says("X-Msg-Redelivery-Count", "1")
	w.call("POST", topic+"/s/message/extend", fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":60000}`, second.id())).want(204)
	for name, body := range map[string]string{
		"extend without a time": fmt.Sprintf("%q", second.id()),
		"extend for a moment":   fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":1}`, second.id()),
		"extend for a day":      fmt.Sprintf(`{"messageId":%q,"ackTimeoutMillis":86400000}`, second.id()),
		"extend nothing":        `{"ackTimeoutMillis":1000}`,
	} {
		if r := w.call("POST", topic+"/s/message/extend", body); r.status != 400 {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
		}
	}
	w.call("POST", topic+"/s/message/nack", fmt.Sprintf(`{"messageId":%q,"delayMillis":-1}`, second.id())).want(400)
	// A late acknowledgement by the first receiver wins.
	w.call("PUT", topic+"/s/message", first.id()).want(204)
	w.call("POST", topic+"/s/message/nack", second.id()).want(204)
	w.call("POST", topic+"/s/message", `{"timeoutMillis":0}`).want(204)
}

func TestBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	var sent struct {
		Results []struct {
			Status          int
			MessageID       string
			MessageStringID string
			Reason          string
			Duplicate       bool
		}
	}
	w.call("POST", topic+"/messages", `{"encoding":"text","producerName":"p","messages":[
		{"payload":"one","key":"k","properties":{"A":"b"},"eventTime":5,"sequenceId":1},
		{"payload":"dHdv","encoding":"base64","idempotencyKey":"i"},
		{"payload":{"three":3},"encoding":"json"},
		{"payload":"four","schemaVersion":7},
		{"payload":"dHdv","encoding":"base64","idempotencyKey":"i"}]}`).want(207).into(&sent)
	for i, status := range []int{201, 201, 201, 404, 201} {
		if sent.Results[i].Status != status || (status == 404) != (sent.Results[i].Reason != "") {
			t.Errorf("message %d: %+v", i, sent.Results[i])
		}
	}
	if !sent.Results[4].Duplicate || sent.Results[4].MessageID != sent.Results[1].MessageID {
		t.Errorf("the second of two equal keys: %+v", sent.Results[4])
	}
	var got struct {
		Messages []struct {
			MessageID  string
			Payload    any
			Encoding   string
			Key        string
			Properties map[string]string
			SequenceID uint64
		}
	}
	w.call("POST", topic+"/s/messages", `{"maxMessages":10,"encoding":"json"}`).want(200).into(&got)
	if len(got.Messages) != 3 {
		t.Fatalf("got %d messages", len(got.Messages))
	}
	if m := got.Messages[0]; m.Encoding != "base64" || m.Payload != "b25l" || m.Key != "k" || m.Properties["A"] != "b" || m.SequenceID != 1 {
		t.Errorf("first: %+v", m)
	}
	if m := got.Messages[2]; m.Encoding != "json" || fmt.Sprint(m.Payload) != "map[three:3]" {
		t.Errorf("third: %+v", m)
	}
	w.call("PUT", topic+"/s/messages", fmt.Sprintf(`[%q,"99999:0:-1:0"]`, got.Messages[0].MessageID)).want(404)
	w.call("PUT", topic+"/s/messages", `[]`).want(400)
	w.call("PUT", topic+"/s/messages", `["x"]`).want(400)
	w.call("PUT", topic+"/s/messages", `[`+strings.Repeat(`"1:0:-1:0",`, 1000)+`"1:0:-1:0"]`).want(413)
	w.call("PUT", topic+"/s/messages", fmt.Sprintf(`[%q,%q]`, got.Messages[0].MessageID, got.Messages[1].MessageID)).want(204)
	w.call("POST", topic+"/s/message/nack", fmt.Sprintf(`{"messageIds":[%q]}`, got.Messages[2].MessageID)).want(204)
	w.call("POST", topic+"/s/messages", `{"encoding":"text"}`).want(200).into(&got)
	if len(got.Messages) != 1 || got.Messages[0].Payload != `{"three":3}` {
		t.Errorf("again: %+v", got)
	}
	w.call("PUT", topic+"/s/message/cumulative", got.Messages[0].MessageID).want(204)
	w.call("POST", topic+"/s/messages", `{"timeoutMillis":0}`).want(204)
	for _, body := range []string{
		``, `[]`, `{}`, `{"messages":[]}`, `{"messages":[{"payload":5}]}`, `{"messages":[{"payload":"§"}]}`,
		`{"messages":[{"payload":"x","encoding":"rot13"}]}`, `{"messages":[{"payload":"","deliverAfterMillis":-1}]}`,
		`{"messages":[{"payload":"","schemaVersion":-1}]}`, `{"messages":[{"payload":"","sequenceId":-1}]}`,
	} {
		if r := w.call("POST", topic+"/messages", body); r.status != 400 {
			t.Errorf("%s: status %d: %s", body, r.status, r.body)
		}
	}
	w.call("POST", topic+"/messages", `{"messages":[`+strings.Repeat(`{},`, 1000)+`{}]}`).want(413)
	w.call("POST", topic+"/messages", `{"messages":[`+strings.Repeat(`{},`, 1<<20)+`{}]}`).want(413)
	w.call("POST", topic+"/messages", `{"encoding":"text","messages":[{"payload":"x","key":"a\u0000b"}]}`).want(400)
	w.call("POST", topic+"/s/messages", `{"maxMessages":1001}`).want(413)
	w.call("POST", topic+"/s/messages", `{"maxMessages":0}`).want(400)
}

func TestIdempotencyAndDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	first := w.call("POST", topic+"/message", "x", "Idempotency-Key", "k1").want(201).says("X-Msg-Duplicate", "")
	w.call("POST", topic+"/message", "x", "Idempotency-Key", "k1").want(201).says("X-Msg-Duplicate", "true", "X-Msg-Message-Id", first.id())
	w.call("POST", "/admin/v2/namespaces/public/default/deduplication", "true").want(204)
	numbered := []string{"X-Msg-Producer-Name", "p", "X-Msg-Sequence-Id", "9"}
	second := w.call("POST", topic+"/message", "y", numbered...).want(201)
	w.call("POST", topic+"/message", "y", numbered...).want(201).says("X-Msg-Duplicate", "true", "X-Msg-Message-Id", second.id())
	w.call("POST", topic+"/message", "late", "X-Msg-Deliver-After-Ms", "200").want(201)
	for _, want := range []string{"x", "y", "late"} {
		got := w.call("POST", topic+"/s/message", `{"timeoutMillis":10000}`).want(200).is(want)
		w.call("PUT", topic+"/s/message", got.id()).want(204)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	path := "/admin/v2/persistent/public/default/t"
	w.call("PUT", path+"/subscription/s", `{"position":"earliest","ackTimeoutMillis":5000,"deadLetterPolicy":{"maxRedeliverCount":1,"deadLetterTopic":"graves"}}`).want(204)
	w.call("GET", path+"/subscription/s/properties", "").want(200).
		is(`{"ackTimeoutMillis":"5000","deadLetterTopic":"graves","maxRedeliverCount":"1"}`)
	w.call("PUT", "/admin/v2/persistent/public/default/graves/subscription/u", "").want(204)
	topic := root + "public/default/t"
	w.call("POST", topic+"/message", "poison", "X-Msg-Property-why", "bad").want(201)
	for range 2 {
		got := w.call("POST", topic+"/s/message", "").want(200)
		w.call("POST", topic+"/s/message/nack", got.id()).want(204)
	}
	w.call("POST", topic+"/s/message", `{"timeoutMillis":0}`).want(204)
	w.call("POST", root+"public/default/graves/u/message", `{"timeoutMillis":5000}`).want(200).is("poison").says("X-Msg-Property-why", "bad")
	w.call("PUT", path+"/subscription/x", `{"deadLetterPolicy":{"deadLetterTopic":"graves"}}`).want(412)
	w.call("PUT", path+"/subscription/x", `{"deadLetterPolicy":{"maxRedeliverCount":-1}}`).want(400)
	w.call("PUT", path+"/subscription/s/properties", `{"maxRedeliverCount":"many"}`).want(412)
}

func TestPartitionsDrainThroughTheParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 4)
	seen := map[string]bool{}
	for i := range 12 {
		w.call("POST", topic+"/message", fmt.Sprint(i)).want(201)
	}
	for range 12 {
		got := w.call("POST", topic+"/s/message", "").want(200)
		seen[got.body] = true
		w.call("PUT", topic+"/s/message", got.id()).want(204)
	}
	if len(seen) != 12 {
		t.Errorf("got %v", seen)
	}
	one := topic + "-partition-3"
	r := w.call("POST", one+"/message", "direct").want(201)
	if !strings.Contains(r.body, ":3:0") {
		t.Errorf("id %s", r.body)
	}
	w.call("POST", topic+"-partition-2/s/message", `{"timeoutMillis":0}`).want(204)
	got := w.call("POST", one+"/s/message", "").want(200).is("direct")
	w.call("PUT", topic+"-partition-2/s/message", got.id()).want(404)
	w.call("PUT", one+"/s/message", got.id()).want(204)
	w.call("POST", topic+"-partition-4/message", "x").want(404)
}

func TestCORS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, messaging.Options{})
	topic := w.ready("t", 0)
	w.as("").call("OPTIONS", topic+"/s/message", "", "Origin", "https://app.example",
		"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization, x-msg-property-a").
		want(http.StatusNoContent).says("Access-Control-Allow-Origin", "https://app.example",
		"Access-Control-Allow-Headers", "authorization, x-msg-property-a")
	w.call("POST", topic+"/message", "x", "X-Msg-Property-a", "1", "X-Msg-Property-b", "2").want(201)
	got := w.call("POST", topic+"/s/message", "", "Origin", "https://app.example").want(200)
	exposed := got.header.Get("Access-Control-Expose-Headers")
	for _, name := range []string{"X-Msg-Message-Id", "X-Msg-Message-String-Id", "X-Msg-Redelivery-Count", "X-Msg-Property-a", "X-Msg-Property-b"} {
		if !strings.Contains(exposed, name) {
			t.Errorf("%s is not exposed: %s", name, exposed)
		}
	}
	w.call("POST", topic+"/message", "x", "Origin", "https://evil.example").want(201).says("Access-Control-Allow-Origin", "")
}
