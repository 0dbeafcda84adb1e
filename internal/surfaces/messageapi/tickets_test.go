package messageapi_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/brokerhttp/brokertest"
	"freshet/internal/surfaces/messageapi"
)

// ticket requests a ticket for a stream.
func (w *harness) ticket(path string) string {
	w.T.Helper()
	var body struct {
		Ticket    string
		ExpiresAt int64
	}
	w.Call("POST", path+"/ticket", "").WantStatus(201).WantHeaders("Cache-Control", "no-store").Decode(&body)
	if left := time.Until(time.UnixMilli(body.ExpiresAt)); left <= 0 || left > 30*time.Second || len(body.Ticket) < 26 {
		w.T.Fatalf("got ticket %q valid for %s, want one valid for up to 30s", body.Ticket, left)
	}
	return body.Ticket
}

func TestTicketOpensOneStream(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	w := newHarness(t, messaging.Options{})
	log := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.Server = httptest.NewServer(web.Middleware(w.API, log, nil))
	t.Cleanup(w.Server.Close)
	topic, other := w.CreateTopic("t", 0), w.CreateTopic("other", 0)
	w.Call("POST", topic+"/message", "x").WantStatus(201)
	anybody := w.as("")
	for _, path := range []string{topic + "/s/messages", topic + "/tail"} {
		query := "?from=earliest&encoding=text&ticket="
		used := w.ticket(path)
		events, res := anybody.listenWithoutToken(path + query + used)
		if e := next(t, events); e.Data.Payload != "x" {
			t.Errorf("%s: got %+v, want x", path, e)
		}
		_ = res.Body.Close()
		elsewhere := w.ticket(path)
		for _, refused := range []struct{ name, url string }{
			{"twice", path + query + used},
			{"another topic", strings.Replace(path, topic, other, 1) + query + elsewhere},
			{"after a mistake", path + query + elsewhere},
			{"made up", path + query + "AAAAAAAAAAAAAAAAAAAAAAAAAA"},
			{"nothing", path + query},
			{"for consuming", topic + "/tail" + query + w.ticket(topic+"/s/messages")},
		} {
			if r := anybody.Call("GET", refused.url, ""); r.Status != 401 {
				t.Errorf("%s, %s: got status %d, want 401", path, refused.name, r.Status)
			}
		}
		if strings.Contains(logged.String(), used) || strings.Contains(fmt.Sprint(w.Log.Records), used) ||
			strings.Contains(fmt.Sprint(w.Log.Records), elsewhere) {
			t.Errorf("%s: log or audit trail contains a ticket", path)
		}
	}
	// A ticket opens streams and nothing else.
	for method, path := range map[string]string{"POST": topic + "/s/message", "PUT": topic + "/s/message"} {
		anybody.Call(method, path+"?ticket="+w.ticket(topic+"/s/messages"), "").WantStatus(401)
	}
	anybody.Call("POST", topic+"/tail/ticket?ticket="+w.ticket(topic+"/tail"), "").WantStatus(401)
	w.as(w.Account("nobody")).Call("POST", topic+"/tail/ticket", "").WantStatus(401)
}

// listenWithoutToken opens a stream without a token.
func (w *harness) listenWithoutToken(path string) (<-chan event, *http.Response) {
	w.T.Helper()
	return w.listen(w.T.Context(), path, "Authorization", "")
}

// TestTicketDoesNotOutliveThePermission: a ticket is invalid after the caller's role or
// account was removed.
func TestTicketDoesNotOutliveThePermission(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	w.Bind("reader", "topic-consumer", access.Restriction{Topic: "t"})
	reader := w.as(w.Account("reader"))
	ticket := reader.ticket(topic + "/tail")
	w.Policy.DeleteBinding(organization, "reader-topic-consumer", 0)
	w.as("").Call("GET", topic+"/tail?ticket="+ticket, "").WantStatus(401)

	w.Bind("reader", "topic-consumer", access.Restriction{Topic: "t"})
	ticket = reader.ticket(topic + "/tail")
	a, _ := w.Identity.Directory.Account(organization, "reader")
	w.Identity.Directory.DeleteAccount(organization, "reader", a.UID)
	w.as("").Call("GET", topic+"/tail?ticket="+ticket, "").WantStatus(401)
}

func TestTicketsAreBoundedAndEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := messageapi.NewTickets()
		account := func(i int) *identity.Principal {
			return &identity.Principal{Organization: fmt.Sprint(organization, i/100_000), Name: fmt.Sprint(i)}
		}
		var last string
		var err error
		for i := range 1000 {
			if last, err = all.Issue(account(0)); err != nil {
				t.Fatalf("ticket %d: got error %v, want none", i, err)
			}
		}
		if _, err := all.Issue(account(0)); err == nil {
			t.Error("ticket 1001 of one caller: got no error, want one")
		}
		for i := 1000; i < 5000; i++ {
			if _, err := all.Issue(account(i)); err != nil {
				t.Fatalf("ticket %d: got error %v, want none", i, err)
			}
		}
		if _, err := all.Issue(account(6000)); err == nil {
			t.Error("ticket 5001 of one organization: got no error, want one")
		}
		if _, err := all.Issue(account(100_000)); err != nil {
			t.Errorf("ticket of another organization: got error %v, want none", err)
		}
		time.Sleep(30 * time.Second)
		if err := all.Redeem(last); err == nil {
			t.Error("redeeming a ticket after 30s: got no error, want one")
		}
		if last, err = all.Issue(account(0)); err != nil || all.Redeem(last) != nil {
			t.Errorf("ticket after the others have expired: got error %v, want none", err)
		}
	})
}

func TestBasicCredentials(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	anybody := w.as("")
	basic := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, tc := range map[string]struct {
		header string
		status int
		says   string
	}{
		"password":          {"Basic " + basic("any:"+w.Token), 201, ""},
		"lower case":        {"basic " + basic(":"+w.Token), 201, ""},
		"token prefix":      {"Basic " + basic("any:token:"+w.Token), 201, ""},
		"as the user":       {"Basic " + basic(w.Token+":"), 401, ""},
		"wrong password":    {"Basic " + basic("any:thing"), 401, ""},
		"not base64":        {"Basic !", 401, "not valid base64"},
		"unknown scheme":    {"Digest username=x", 401, "Basic with the token as password"},
		"bearer":            {"Bearer " + w.Token, 201, ""},
		"scheme of no name": {" x", 401, ""},
	} {
		r := anybody.Call("POST", topic+"/message", "x", "Authorization", tc.header)
		if r.Status != tc.status || !strings.Contains(r.Body, tc.says) {
			t.Errorf("%s: got %d %s, want %d with %q", name, r.Status, r.Body, tc.status, tc.says)
		}
	}
	anybody.Call("GET", "/admin/v2/clusters", "", "Authorization", "Basic "+basic("any:"+w.Token)).WantStatus(200)
}

// TestLostPermissionWhileWaiting: a waiting consumer that loses its permission gets 401,
// whether or not a message arrives.
func TestLostPermissionWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, produce := range map[string]bool{"a message came": true, "none came": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t, messaging.Options{})
			topic := w.CreateTopic("t", 0)
			w.Bind("reader", "topic-consumer", access.Restriction{Topic: "t"})
			reader := w.as(w.Account("reader"))
			wait := "20000"
			if !produce {
				wait = "1500"
			}
			responses := make(chan *brokertest.Response, 2)
			for _, call := range []string{"/s/message", "/s/messages"} {
				go func() { responses <- reader.Call("POST", topic+call, `{"timeoutMillis":`+wait+`}`) }()
			}
			eventually(t, "the consumers wait", func() bool { return w.waiting("t") == 2 })
			w.Policy.DeleteBinding(organization, "reader-topic-consumer", 0)
			if produce {
				w.Call("POST", topic+"/message", "x").WantStatus(201)
				w.Call("POST", topic+"/message", "y").WantStatus(201)
			}
			for range 2 {
				if r := <-responses; r.Status != 401 ||
					!strings.Contains(r.Header.Get("WWW-Authenticate"), "insufficient_scope") {
					t.Errorf("%s: got %d %s, want 401 with insufficient_scope", r.Request, r.Status, r.Body)
				}
			}
		})
	}
}

func TestInvalidCredits(t *testing.T) {
	t.Parallel()
	w := newHarness(t, messaging.Options{})
	topic := w.CreateTopic("t", 0)
	for _, credits := range []string{"0", "10001", "-1", "x"} {
		w.Call("GET", topic+"/s/messages?credits="+credits, "").WantStatus(400)
		w.Call("GET", topic+"/s/messages", "", "X-Max-Unacked", credits).WantStatus(400)
	}
}
