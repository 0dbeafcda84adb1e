package messageapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/surfaces/brokerhttp/brokertest"
	"freshet/internal/surfaces/messageapi"
	"freshet/test/tally"
)

// TestRequestsAboveTheLimitAreRejected: requests above the limit get 503 with
// Retry-After. Consume calls are not counted by this limiter.
func TestRequestsAboveTheLimitAreRejected(t *testing.T) {
	t.Parallel()
	limiter := web.NewLimiter(1, 1<<20)
	w := newHarness(t, messaging.Options{}, func(o *messageapi.Options) { o.Limiter = limiter })
	topic := w.CreateTopic("t", 0)
	if err := limiter.Enter(web.Caller{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"POST", topic + "/message"},
		{"PUT", topic + "/s/message"},
		{"GET", "/admin/v2/tenants"},
		{"GET", "/rest-stream/admin/v1/topics"},
	} {
		w.Call(c[0], c[1], "").WantStatus(503).WantHeaders("Retry-After", "1")
	}
	w.Call("POST", topic+"/s/message", `{"timeoutMillis":0}`).WantStatus(204)
	limiter.Leave(web.Caller{})
	w.Call("POST", topic+"/message", "x").WantStatus(201)
}

// TestRejectedClientGetsTheError: a client that sends the whole request before it reads still
// gets the error response.
func TestRejectedClientGetsTheError(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	const size = 6 << 20
	body := strings.Repeat("x", size)
	for _, c := range []struct {
		what, path, token, body string
		status                  int
	}{
		{"too large", topic, w.Token, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, body), 413},
		{
			"too large, in chunks", topic, w.Token,
			fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, body), 413,
		},
		{"invalid token", topic, "nonsense", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, body), 401},
		{
			"no such topic", root + "public/default/none", w.Token,
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size/2, body[:size/2]), 404,
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", w.Server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			in := bufio.NewReader(conn)
			for range 2 { // the connection can be reused
				if _, err := fmt.Fprintf(conn, "POST %s/message HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n%s",
					c.path, c.token, c.body); err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				(&brokertest.Response{
					T: t, Request: c.what, Status: res.StatusCode, Header: res.Header,
					Body: string(b),
				}).WantStatus(c.status)
			}
		})
	}
}

// TestClientThatDoesNotReadIsDisconnected: the server closes the connection of a
// client that does not read, so that such clients cannot hold messages in memory.
func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{}, func(o *messageapi.Options) { o.WriteTimeout = 50 * time.Millisecond })
	topic := w.CreateTopic("t", 0)
	payload := strings.Repeat("x", 5<<20)
	w.Call("POST", topic+"/message", payload).WantStatus(201)
	conn, err := net.Dial("tcp", w.Server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST %s/s/message HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+
		"%s\r\nContent-Length: 0\r\n\r\n", topic, w.Token); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message is returned", func() bool { return w.allReturned("t") })
	name := names.Topic{Namespace: names.PublicDefault, Local: "t"}
	again, err := w.Broker.Consumer.Receive(t.Context(), name, "s", messaging.ReceiveOptions{})
	if err != nil || len(again) != 1 || again[0].Redeliveries != 1 {
		t.Errorf("got %d messages, error %v, want one message with one redelivery", len(again), err)
	}
}

// allReturned reports whether all messages that the subscription s delivered were returned.
func (w *harness) allReturned(topic string) bool {
	w.T.Helper()
	var stats struct {
		Subscriptions map[string]struct{ MsgOutCounter, UnackedMessages int }
	}
	w.Call("GET", "/admin/v2/persistent/public/default/"+topic+"/stats", "").WantStatus(200).Decode(&stats)
	s := stats.Subscriptions["s"]
	return s.MsgOutCounter > 0 && s.UnackedMessages == 0
}

// TestAttackStalledCalls: calls of one account whose body never arrives use no more than
// that account's share, on the message interface and the admin interface.
func TestAttackStalledCalls(t *testing.T) {
	t.Parallel()
	const callers = 200
	w := newHarness(t, messaging.Options{}, func(o *messageapi.Options) { o.Limiter = web.NewLimiter(16, 1<<20) })
	topic := w.CreateTopic("t", 0)
	attacker := w.Account("attacker", func(a *identity.Account) { a.Admin = true })
	calls := []string{
		"POST " + topic + "/message", "PUT " + topic + "/s/message", "PUT /admin/v2/tenants/x",
		"POST /admin/v2/namespaces/public/default/retention",
	}
	for i := range callers {
		conn, err := net.Dial("tcp", w.Server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Length: "+
			"1000\r\n\r\n{", calls[i%len(calls)], attacker); err != nil {
			t.Fatal(err)
		}
	}
	failures := 0
	for range 50 {
		for _, c := range [][3]string{{"POST", topic + "/message", "x"}, {"GET", "/admin/v2/tenants", ""}} {
			if reply := w.Call(c[0], c[1], c[2]); reply.Status >= 300 {
				failures++
				t.Errorf("%s %s while other calls stall: got status %d", c[0], c[1], reply.Status)
			}
		}
	}
	tally.Attack(t, "bodies that never arrive, message and admin interface", callers, failures)
}
