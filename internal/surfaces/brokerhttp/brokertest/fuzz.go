package brokertest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
)

// seeds are bodies for every kind of call.
var seeds = []string{
	``, `{}`, `[]`, `null`, `"earliest"`, `5`, `{"messages":[{"payload":"eA==","properties":{"a":"b"}}]}`,
	`{"timeoutMillis":0,"maxMessages":5}`,
	`CAgQADAA`, `["8:0:-1:0"]`, `{"messageId":"8:0:0:0","delayMillis":1,"ackTimeoutMillis":1000}`,
	`{"ledgerId":-1,"entryId":-1,"deadLetterPolicy":{"maxRedeliverCount":3,"deadLetterTopic":"d"}}`,
	`{"type":"AVRO","schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[]}"}`,
	`{"topic_name":"a.b.c","partitions_count":2}`,
	`{"type":"KEY_VALUE","schema":"{\"key\":\"\",\"value\":{}}",` +
		`"properties":{"key.schema.type":"STRING","value.schema.type":"JSON"}}`,
	`{"retentionTimeInMinutes":-1,"retentionSizeInMB":-1}`, `{"adminRoles":["x"],"allowedClusters":["prod"]}`,
	`{"partitions":2}`,
	`{"offsets":[{"topic_name":"t","position":"latest"},` +
		`{"topic_name":"t","partition_id":1,"timestamp":9223372036854775807}]}`,
	`{"messages":[{"nullValue":true,"key":"","keyEncoding":"base64","headers":[["a",null],["/w==","","base64"]]}]}`,
}

// NewForFuzzing returns a World that has a topic t with a subscription s and a schema.
func NewForFuzzing(f *testing.F) *Harness {
	f.Helper()
	w := New(f, messaging.Options{Limits: messaging.Limits{MaxWait: 1, Topics: 1000}})
	w.ValidateResponses = false
	w.CreateTopic("t", 2)
	w.Groups()
	w.Call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).WantStatus(200)
	return w
}

// FuzzRouter fuzzes methods and paths, with paths as seeds. It does not send the
// requests that skip reports: those of another surface and those that take long.
func FuzzRouter(f *testing.F, skip func(method string, u *url.URL) bool, paths ...string) {
	f.Helper()
	for _, path := range paths {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "BREW"} {
			f.Add(method, path, []byte("{}"))
		}
	}
	w := NewForFuzzing(f)
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		u, err := url.ParseRequestURI(path)
		if err != nil || skip(method, u) {
			return
		}
		w.T = t
		w.Serve(method, u, http.Header{}, body)
	})
}

// FuzzBodies fuzzes the bodies of requests to the targets, each a method and a path.
func FuzzBodies(f *testing.F, targets ...string) {
	f.Helper()
	for i := range targets {
		for _, body := range seeds {
			f.Add(uint8(i), []byte(body))
		}
	}
	w := NewForFuzzing(f)
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		w.T = t
		method, path, _ := strings.Cut(targets[int(which)%len(targets)], " ")
		w.Serve(method, &url.URL{Path: path}, http.Header{}, body)
	})
}
