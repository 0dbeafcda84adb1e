package messageapi

import (
	"reflect"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

var batchBodies = []string{
	`{"messages":[{"payload":"aGk="}]}`,
	` {"encoding":"text", "producerName":"p", "messages" : [ {"payload":"hällo"} , ` +
		`{"payload":"x","key":"k","eventTime":12,"sequenceId":3} ] } `,
	`{"messages":[{"payload":{"a":[1,"]}",{}]},"encoding":"json"},{"payload":[],"encoding":"json"}]}`,
	`{"messages":[{"nullValue":true,"key":"k"},{"nullValue":false,"payload":""}]}`,
	`{"messages":[{"payload":"aGk=","properties":{"a":"b","c":"d"},"deliverAt":-5,"schemaVersion":0,` +
		`"deliverAfterMillis":7,"idempotencyKey":"i","keyEncoding":"base64"}]}`,
	`{"messages":[{"payload":"aGk=","headers":[{"key":"a","value":"b"}]}]}`,
	`{"messages":[{"payload":"a\u0047k="}]}`,
	`{"Messages":[{"PAYLOAD":"aGk="}]}`,
	`{"messages":[{"payload":"aGk=","payload":"aGk="}]}`,
	`{"messages":[{"payload":"aGk=","properties":{"a":"b","a":"c"}}]}`,
	`{"messages":[{"payload":"aGk=","eventTime":01}]}`,
	`{"messages":[{"payload":"aGk=","eventTime":1.0}]}`,
	`{"messages":[{"payload":"aGk=","eventTime":12345678901234567890}]}`,
	`{"messages":[{"payload":"aGk=","sequenceId":-1}]}`,
	"{\"messages\":[{\"payload\":\"aG\nk=\"}]}",
	"{\"messages\":[{\"payload\":\"a\x01\",\"encoding\":\"text\"}]}",
	"{\"messages\":[{\"payload\":\"a\xff\",\"encoding\":\"text\"}]}",
	`{"messages":[{"payload":{]},"encoding":"json"}]}`,
	`{"messages":[{"payload":"a","encoding":"json"}]}`,
	`{"messages":[{"payload":null}]}`,
	`{"messages":[null]}`, `{"messages":[]}`, `{"messages":[{}]}`, `{}`, `null`, ``, `[]`,
	`{"messages":[{"payload":"aGk="}]} x`,
	`{"messages":[{"payload":"aGk="},]}`, `{"messages":[{"payload":"aGk="}`, `{"messages":[{"payload":"aGk=`,
	`{"messages":[{"payload":{"a":"\\`,
	`{"messages":[{"payload":"aGk=","nullValue":truex}]}`, `{"messages":[{"payload":"aGk=","eventTime":-}]}`,
	`{"messages":[{"payload":"aGk=","eventTime":--1}]}`,
}

// TestScanBatch checks that scanBatch decodes the bodies that clients really send.
func TestScanBatch(t *testing.T) {
	for i, text := range batchBodies {
		if got, want := scanBatch([]byte(text), new(batchBody)), i < 5; want && !got {
			t.Errorf("scanBatch did not decode body %d: %s", i, text)
		}
	}
}

// FuzzScanBatch compares scanBatch with encoding/json, up to the resulting messages.
func FuzzScanBatch(f *testing.F) {
	for _, text := range batchBodies {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var short, long batchBody
		if !scanBatch(b, &short) {
			return
		}
		got, gotErr := short.unpack(nil)
		_, wantErr := brokerhttp.DecodeJSON(b, &long)
		want, unpackErr := long.unpack(nil)
		if wantErr == nil {
			wantErr = unpackErr
		}
		if (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("body %q: got error %v, want %v", b, gotErr, wantErr)
		}
		if gotErr == nil && !reflect.DeepEqual(normalized(got), normalized(want)) {
			t.Fatalf("body %q: got %+v, want %+v", b, got, want)
		}
	})
}

// normalized removes differences that do not matter: a nil payload equals an empty one, and a
// delay starts when it is decoded.
func normalized(msgs []messaging.Message) []messaging.Message {
	for i := range msgs {
		if len(msgs[i].Payload) == 0 {
			msgs[i].Payload = nil
		}
		if msgs[i].DeliverAt > 0 {
			msgs[i].DeliverAt = 1
		}
	}
	return msgs
}
