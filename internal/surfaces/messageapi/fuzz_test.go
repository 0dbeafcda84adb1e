package messageapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"freshet/internal/surfaces/brokerhttp/brokertest"
)

func FuzzRouter(f *testing.F) {
	lasts := func(method string, u *url.URL) bool {
		return strings.Contains(u.String(), "/tail") || method == "GET" &&
			strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/messages")
	}
	brokertest.FuzzRouter(f, lasts,
		root+"public/default/t/message", root+"persistent/public/default/t/s/message",
		root+"public/default/a%2Fb/message/nack",
		root+"public/default/t-partition-99999/message", "/admin/rest/openapi.yaml", "/admin/rest/%zz")
}

func FuzzHeaders(f *testing.F) {
	f.Add("X-Msg-Sequence-Id", "1", "X-Msg-Property-a", "b", "X-Pulsar-Event-Time", "5")
	f.Add("X-Msg-Long-Schema-Version", "-1", "Idempotency-Key", "\x00", "X-Msg-Partition-Key", "ü")
	f.Add("X-Msg-Properties", "eyJhIjoiYiJ9", "X-Msg-Deliver-After-Ms", "9223372036854775807", "Accept",
		"text/plain;q=x")
	f.Add("X-Msg-Property-", "", "X-Msg-Base64-Schema-Version", "AAAAAAAAAAA=", "X-Msg-Deliver-At", "1")
	w := brokertest.NewForFuzzing(f)
	u := &url.URL{Path: root + "public/default/t/message"}
	take := &url.URL{Path: root + "public/default/t/s/message"}
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2, name3, value3 string) {
		w.T = t
		header := http.Header{}
		for _, kv := range [][2]string{{name1, value1}, {name2, value2}, {name3, value3}} {
			header.Set(kv[0], kv[1])
		}
		if w.Serve("POST", u, header, []byte("x")).Code != http.StatusCreated {
			return
		}
		got := w.Serve("POST", take, http.Header{}, []byte(`{"timeoutMillis":0}`))
		if got.Code == http.StatusNoContent {
			return // delayed
		}
		if got.Code != http.StatusOK || got.Header().Get("X-Msg-Message-Id") == "" {
			t.Fatalf("consuming: got status %d, header %v, want %d with a message id", got.Code, got.Header(),
				http.StatusOK)
		}
		ack := w.Serve("PUT", take, http.Header{}, []byte(got.Header().Get("X-Msg-Message-Id")))
		if ack.Code != http.StatusNoContent {
			t.Fatalf("acknowledging: got status %d: %s, want %d", ack.Code, ack.Body, http.StatusNoContent)
		}
	})
}

func FuzzBodies(f *testing.F) {
	brokertest.FuzzBodies(f,
		"POST "+root+"public/default/t/messages",
		"POST "+root+"public/default/t/s/message",
		"PUT "+root+"public/default/t/s/message",
		"POST "+root+"public/default/t/s/messages",
		"PUT "+root+"public/default/t/s/messages",
		"POST "+root+"public/default/t/s/message/nack",
		"POST "+root+"public/default/t/s/message/extend",
		"PUT "+root+"public/default/t/s/message/cumulative",
	)
}
