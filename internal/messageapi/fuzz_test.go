package messageapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"freshet/internal/messaging"
)

// fuzzWorld has a topic t with a subscription s and a schema.
func fuzzWorld(f *testing.F) *world {
	f.Helper()
	w := newWorld(f, messaging.Options{Limits: messaging.Limits{Wait: 1, Topics: 1000}})
	w.Checked = false
	w.Ready("t", 2)
	w.Call("POST", "/admin/v2/schemas/public/default/t/schema", `{"type":"STRING","schema":""}`).Want(200)
	return w
}

func FuzzRouter(f *testing.F) {
	for _, path := range []string{
		root + "public/default/t/message", root + "persistent/public/default/t/s/message", root + "public/default/a%2Fb/message/nack",
		root + "public/default/t-partition-99999/message", "/admin/rest/openapi.yaml", "/admin/rest/%zz",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "BREW"} {
			f.Add(method, path, []byte("{}"))
		}
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		u, err := url.ParseRequestURI(path)
		if err != nil || strings.Contains(path, "/tail") || method == "GET" && strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/messages") {
			return // not a request, or one that lasts
		}
		w.T = t
		w.Attempt(method, u, http.Header{}, body)
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add("X-Msg-Sequence-Id", "1", "X-Msg-Property-a", "b", "X-Pulsar-Event-Time", "5")
	f.Add("X-Msg-Long-Schema-Version", "-1", "Idempotency-Key", "\x00", "X-Msg-Partition-Key", "ü")
	f.Add("X-Msg-Properties", "eyJhIjoiYiJ9", "X-Msg-Deliver-After-Ms", "9223372036854775807", "Accept", "text/plain;q=x")
	f.Add("X-Msg-Property-", "", "X-Msg-Base64-Schema-Version", "AAAAAAAAAAA=", "X-Msg-Deliver-At", "1")
	w := fuzzWorld(f)
	u := &url.URL{Path: root + "public/default/t/message"}
	take := &url.URL{Path: root + "public/default/t/s/message"}
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2, name3, value3 string) {
		w.T = t
		header := http.Header{}
		for _, kv := range [][2]string{{name1, value1}, {name2, value2}, {name3, value3}} {
			header.Set(kv[0], kv[1])
		}
		if w.Attempt("POST", u, header, []byte("x")).Code != http.StatusCreated {
			return
		}
		got := w.Attempt("POST", take, http.Header{}, []byte(`{"timeoutMillis":0}`))
		if got.Code == http.StatusNoContent {
			return // delayed
		}
		if got.Code != http.StatusOK || got.Header().Get("X-Msg-Message-Id") == "" {
			t.Fatalf("status %d, header %v, want %v", got.Code, got.Header(), http.StatusOK)
		}
		ack := w.Attempt("PUT", take, http.Header{}, []byte(got.Header().Get("X-Msg-Message-Id")))
		if ack.Code != http.StatusNoContent {
			t.Fatalf("acknowledging: status %d: %s, want %v", ack.Code, ack.Body, http.StatusNoContent)
		}
	})
}

func FuzzBodies(f *testing.F) {
	targets := []struct{ method, path string }{
		{"POST", root + "public/default/t/messages"},
		{"POST", root + "public/default/t/s/message"},
		{"PUT", root + "public/default/t/s/message"},
		{"POST", root + "public/default/t/s/messages"},
		{"PUT", root + "public/default/t/s/messages"},
		{"POST", root + "public/default/t/s/message/nack"},
		{"POST", root + "public/default/t/s/message/extend"},
		{"PUT", root + "public/default/t/s/message/cumulative"},
	}
	for i := range targets {
		for _, body := range []string{
			``, `{}`, `[]`, `null`, `"earliest"`, `5`, `{"messages":[{"payload":"eA==","properties":{"a":"b"}}]}`, `{"timeoutMillis":0,"maxMessages":5}`,
			`CAgQADAA`, `["8:0:-1:0"]`, `{"messageId":"8:0:0:0","delayMillis":1,"ackTimeoutMillis":1000}`,
			`{"ledgerId":-1,"entryId":-1,"deadLetterPolicy":{"maxRedeliverCount":3,"deadLetterTopic":"d"}}`,
			`{"type":"AVRO","schema":"{\"type\":\"record\",\"name\":\"R\",\"fields\":[]}"}`, `{"topic_name":"a.b.c","partitions_count":2}`,
			`{"type":"KEY_VALUE","schema":"{\"key\":\"\",\"value\":{}}","properties":{"key.schema.type":"STRING","value.schema.type":"JSON"}}`,
			`{"retentionTimeInMinutes":-1,"retentionSizeInMB":-1}`, `{"adminRoles":["x"],"allowedClusters":["prod"]}`, `{"partitions":2}`,
		} {
			f.Add(uint8(i), []byte(body))
		}
	}
	w := fuzzWorld(f)
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		w.T = t
		target := targets[int(which)%len(targets)]
		w.Attempt(target.method, &url.URL{Path: target.path}, http.Header{}, body)
	})
}
