package adminapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"freshet/internal/broker/messaging"
)

func TestPeekWithFilter(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	const path = "/admin/v2/persistent/public/default/t/subscription/own"
	w.Call("PUT", path, `"earliest"`).WantStatus(204)
	for i := range 5 {
		w.Call("POST", topic+"/message", fmt.Sprintf(`{"n":%d}`, i)).WantStatus(201)
	}
	query := func(position int, filter, more string) string {
		return fmt.Sprintf("%s/position/%d?filter=%s%s", path, position, url.QueryEscape(filter), more)
	}
	first := w.Call("GET", query(1, `payload.n > 1`, ""), "").WantStatus(200).WantBody(`{"n":2}`).WantHeaders(
		"X-Pulsar-Filter-Scanned", "3", "X-Pulsar-Filter-Failed", "0")
	last := first.Header.Get("X-Pulsar-Last-Message-Id")
	if !strings.HasPrefix(last, first.Header.Get("X-Pulsar-Message-Id")+":") {
		t.Errorf("last message: got %q, want the id of the message %v", last, first.Header)
	}
	w.Call("GET", query(2, `payload.n > 1`, ""), "").WantStatus(200).WantBody(`{"n":3}`)
	w.Call("GET", query(1, `payload.n > 1`, "&after="+last), "").WantStatus(200).WantBody(`{"n":3}`)
	w.Call("GET", path+"/position/1?after="+last, "").WantStatus(200).WantBody(`{"n":3}`)
	w.Call("GET", query(1, `payload["a\nb"] == 1`, ""), "").WantStatus(204).WantHeaders(
		"X-Pulsar-Filter-Scanned", "5", "X-Pulsar-Filter-Failed", "5",
		"X-Pulsar-Filter-Failure", `"no such key: a\nb"`, "X-Pulsar-Last-Message-Id", "")
	r := w.Call("GET", query(1, `payload.n >`, ""), "").WantStatus(400)
	if !strings.Contains(r.Body, "not a valid expression") || !strings.Contains(r.Body, "<input>:1:12") {
		t.Errorf("invalid expression: got %s, want the position of the error", r.Body)
	}
	w.Call("GET", query(1, `true`, "&after=x"), "").WantStatus(400)
	w.Call("GET", query(1, `true`, "&after=99999:0:-1:0"), "").WantStatus(404)
	w.Call("GET", query(0, `true`, ""), "").WantStatus(400)
}
