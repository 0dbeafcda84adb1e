package messageapi_test

import (
	"fmt"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
)

func TestBatches(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	var sent struct {
		Results []struct {
			Status          int
			MessageID       string
			MessageStringID string
			Reason          string
			Duplicate       bool
		}
	}
	w.Call("POST", topic+"/messages", `{"encoding":"text","producerName":"p","messages":[
		{"payload":"one","key":"k","properties":{"A":"b"},"eventTime":5,"sequenceId":1},
		{"payload":"dHdv","encoding":"base64","idempotencyKey":"i"},
		{"payload":{"three":3},"encoding":"json"},
		{"payload":"four","schemaVersion":7},
		{"payload":"dHdv","encoding":"base64","idempotencyKey":"i"}]}`).WantStatus(207).Decode(&sent)
	for i, status := range []int{201, 201, 201, 404, 201} {
		if sent.Results[i].Status != status || (status == 404) != (sent.Results[i].Reason != "") {
			t.Errorf("message %d: got %+v, want status %d", i, sent.Results[i], status)
		}
	}
	if !sent.Results[4].Duplicate || sent.Results[4].MessageID != sent.Results[1].MessageID {
		t.Errorf("second message with the same idempotency key: got %+v, want a duplicate of %s", sent.Results[4],
			sent.Results[1].MessageID)
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
	w.Call("POST", topic+"/s/messages", `{"maxMessages":10,"encoding":"json"}`).WantStatus(200).Decode(&got)
	if len(got.Messages) != 3 {
		t.Fatalf("got %d messages, want 3", len(got.Messages))
	}
	if m := got.Messages[0]; m.Encoding != "base64" || m.Payload != "b25l" || m.Key != "k" ||
		m.Properties["A"] != "b" || m.SequenceID != 1 {
		t.Errorf("first message: got %+v, want b25l in base64, key k, property A=b, sequence id 1", m)
	}
	if m := got.Messages[2]; m.Encoding != "json" || fmt.Sprint(m.Payload) != "map[three:3]" {
		t.Errorf("third message: got %+v, want JSON three=3", m)
	}
	w.Call("PUT", topic+"/s/messages", fmt.Sprintf(`[%q,"99999:0:-1:0"]`, got.Messages[0].MessageID)).WantStatus(404)
	w.Call("PUT", topic+"/s/messages", `[]`).WantStatus(400)
	w.Call("PUT", topic+"/s/messages", `["x"]`).WantStatus(400)
	w.Call("PUT", topic+"/s/messages", `[`+strings.Repeat(`"1:0:-1:0",`, 1000)+`"1:0:-1:0"]`).WantStatus(413)
	w.Call("PUT", topic+"/s/messages",
		fmt.Sprintf(`[%q,%q]`, got.Messages[0].MessageID, got.Messages[1].MessageID)).WantStatus(204)
	w.Call("POST", topic+"/s/message/nack",
		fmt.Sprintf(`{"messageIds":[%q]}`, got.Messages[2].MessageID)).WantStatus(204)
	w.Call("POST", topic+"/s/messages", `{"encoding":"text"}`).WantStatus(200).Decode(&got)
	if len(got.Messages) != 1 || got.Messages[0].Payload != `{"three":3}` {
		t.Errorf("after a negative acknowledgement: got %+v, want the third message as text", got)
	}
	w.Call("PUT", topic+"/s/message/cumulative", got.Messages[0].MessageID).WantStatus(204)
	w.Call("POST", topic+"/s/messages", `{"timeoutMillis":0}`).WantStatus(204)
	for _, body := range []string{
		``, `[]`, `{}`, `{"messages":[]}`, `{"messages":[{"payload":5}]}`, `{"messages":[{"payload":"§"}]}`,
		`{"messages":[{"payload":"x","encoding":"rot13"}]}`, `{"messages":[{"payload":"","deliverAfterMillis":-1}]}`,
		`{"messages":[{"payload":"","schemaVersion":-1}]}`, `{"messages":[{"payload":"","sequenceId":-1}]}`,
	} {
		if r := w.Call("POST", topic+"/messages", body); r.Status != 400 {
			t.Errorf("%s: got status %d: %s, want 400", body, r.Status, r.Body)
		}
	}
	w.Call("POST", topic+"/messages", `{"messages":[`+strings.Repeat(`{},`, 1000)+`{}]}`).WantStatus(413)
	w.Call("POST", topic+"/messages", `{"messages":[`+strings.Repeat(`{},`, 1<<20)+`{}]}`).WantStatus(413)
	w.Call("POST", topic+"/messages",
		`{"encoding":"text","messages":[{"payload":"x","key":"a\u0000b"}]}`).WantStatus(400)
	w.Call("POST", topic+"/s/messages", `{"maxMessages":1001}`).WantStatus(413)
	w.Call("POST", topic+"/s/messages", `{"maxMessages":0}`).WantStatus(400)
}

func TestIdempotencyAndDelay(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	first := w.Call("POST", topic+"/message", "x", "Idempotency-Key",
		"k1").WantStatus(201).WantHeaders("X-Msg-Duplicate", "")
	w.Call("POST", topic+"/message", "x", "Idempotency-Key",
		"k1").WantStatus(201).WantHeaders("X-Msg-Duplicate", "true",
		"X-Msg-Message-Id", first.MessageID())
	w.Call("POST", "/admin/v2/namespaces/public/default/deduplication", "true").WantStatus(204)
	numbered := []string{"X-Msg-Producer-Name", "p", "X-Msg-Sequence-Id", "9"}
	second := w.Call("POST", topic+"/message", "y", numbered...).WantStatus(201)
	w.Call("POST", topic+"/message", "y", numbered...).WantStatus(201).WantHeaders("X-Msg-Duplicate", "true",
		"X-Msg-Message-Id", second.MessageID())
	w.Call("POST", topic+"/message", "late", "X-Msg-Deliver-After-Ms", "200").WantStatus(201)
	for _, want := range []string{"x", "y", "late"} {
		got := w.Call("POST", topic+"/s/message", `{"timeoutMillis":10000}`).WantStatus(200).WantBody(want)
		w.Call("PUT", topic+"/s/message", got.MessageID()).WantStatus(204)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	path := "/admin/v2/persistent/public/default/t"
	w.Call("PUT", path+"/subscription/s",
		`{"position":"earliest","ackTimeoutMillis":5000,`+
			`"deadLetterPolicy":{"maxRedeliverCount":1,"deadLetterTopic":"graves"}}`).WantStatus(204)
	w.Call("GET", path+"/subscription/s/properties", "").WantStatus(200).
		WantBody(`{"ackTimeoutMillis":"5000","deadLetterTopic":"graves","maxRedeliverCount":"1"}`)
	w.Call("PUT", "/admin/v2/persistent/public/default/graves/subscription/u", "").WantStatus(204)
	topic := root + "public/default/t"
	origin := w.Call("POST", topic+"/message", "poison", "X-Msg-Property-why",
		"bad").WantStatus(201).Header.Get("X-Msg-Message-String-Id")
	for range 2 {
		got := w.Call("POST", topic+"/s/message", "").WantStatus(200)
		w.Call("POST", topic+"/s/message/nack", got.MessageID()).WantStatus(204)
	}
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(204)
	w.Call("POST", root+"public/default/graves/u/message", `{"timeoutMillis":5000}`).WantStatus(200).WantBody(
		"poison").WantHeaders(
		"X-Msg-Property-why", "bad")
	var letter struct {
		Messages []struct{ Properties map[string]string }
	}
	w.Call("PUT", "/admin/v2/persistent/public/default/graves/subscription/v", `"earliest"`).WantStatus(204)
	w.Call("POST", root+"public/default/graves/v/messages", "").WantStatus(200).Decode(&letter)
	if got := letter.Messages[0].Properties["ORIGIN_MESSAGE_ID"]; got != origin {
		t.Errorf("ORIGIN_MESSAGE_ID: got %q, want %q, the id that the producer got", got, origin)
	}
	w.Call("PUT", path+"/subscription/x", `{"deadLetterPolicy":{"deadLetterTopic":"graves"}}`).WantStatus(412)
	w.Call("PUT", path+"/subscription/x", `{"deadLetterPolicy":{"maxRedeliverCount":-1}}`).WantStatus(400)
	w.Call("PUT", path+"/subscription/s/properties", `{"maxRedeliverCount":"many"}`).WantStatus(412)
}

func TestPartitionsDrainThroughTheParent(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 4)
	seen := map[string]bool{}
	for i := range 12 {
		w.Call("POST", topic+"/message", fmt.Sprint(i)).WantStatus(201)
	}
	for range 12 {
		got := w.Call("POST", topic+"/s/message", "").WantStatus(200)
		seen[got.Body] = true
		w.Call("PUT", topic+"/s/message", got.MessageID()).WantStatus(204)
	}
	if len(seen) != 12 {
		t.Errorf("got %v, want 12 distinct messages", seen)
	}
	one := topic + "-partition-3"
	r := w.Call("POST", one+"/message", "direct").WantStatus(201)
	if !strings.Contains(r.Body, ":3:0") {
		t.Errorf("got message id %s, want partition 3", r.Body)
	}
	w.Call("POST", topic+"-partition-2/s/message", `{"timeoutMillis":0}`).WantStatus(204)
	got := w.Call("POST", one+"/s/message", "").WantStatus(200).WantBody("direct")
	w.Call("PUT", topic+"-partition-2/s/message", got.MessageID()).WantStatus(404)
	w.Call("PUT", one+"/s/message", got.MessageID()).WantStatus(204)
	w.Call("POST", topic+"-partition-4/message", "x").WantStatus(404)
}
