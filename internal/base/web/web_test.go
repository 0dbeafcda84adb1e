package web_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
)

func TestAccepts(t *testing.T) {
	t.Parallel()
	offers := []string{"application/vnd.schemaregistry.v1+json", "application/json"}
	tests := map[string]struct {
		header []string
		want   string
	}{
		"no header":            {nil, offers[0]},
		"empty header":         {[]string{""}, offers[0]},
		"exact":                {[]string{"application/json"}, "application/json"},
		"any":                  {[]string{"*/*"}, offers[0]},
		"any application":      {[]string{"application/*"}, offers[0]},
		"old Java":             {[]string{"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"}, offers[0]},
		"axios":                {[]string{"application/json, text/plain, */*"}, "application/json"},
		"by weight":            {[]string{"application/json;q=0.5, " + offers[0] + ";q=0.9"}, offers[0]},
		"several headers":      {[]string{"text/html", "application/json"}, "application/json"},
		"refused by weight":    {[]string{"application/json;q=0"}, ""},
		"something else":       {[]string{"text/html"}, ""},
		"case does not matter": {[]string{"Application/JSON"}, "application/json"},
		"nonsense":             {[]string{";;;,/,"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := web.Accepts(tc.header, offers...)
			if got != tc.want || ok != (tc.want != "") {
				t.Errorf("%q: got %q, %v, want %q", tc.header, got, ok, tc.want)
			}
		})
	}
}

func TestReadBodyIsBounded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body    string
		chunked bool
		tooBig  bool
	}{
		"fits":                      {"12345", false, false},
		"one too many":              {"123456", false, true},
		"fits, length unknown":      {"12345", true, false},
		"too many, length unknown":  {"123456", true, true},
		"nothing":                   {"", false, false},
		"nothing, length not known": {"", true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.body))
			if tc.chunked {
				r.ContentLength = -1
			}
			got, err := web.ReadBody(r, 5)
			if tc.tooBig {
				if !errors.Is(err, web.ErrBodyTooLarge) || errs.KindOf(err) != errs.TooLarge {
					t.Errorf("got error %v, want %v", err, web.ErrBodyTooLarge)
				}
				return
			}
			if err != nil || string(got) != tc.body {
				t.Errorf("got %q, %v, want %q", got, err, tc.body)
			}
		})
	}
}

func TestMarshalJSONDoesNotEscapeHTML(t *testing.T) {
	t.Parallel()
	got, err := web.MarshalJSON(map[string]string{"schema": `<a & b>`})
	if err != nil || string(got) != `{"schema":"<a & b>"}` {
		t.Errorf("got %s, %v, want unescaped text", got, err)
	}
}

func TestBearerToken(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "BEARER  abc": "abc", "Basic abc": "", "Bearer": "", "": "",
		"Bearer ": "",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		if got, ok := web.BearerToken(r); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", header, got, ok, want)
		}
	}
}

type observedStatus struct{ status int }

func (o *observedStatus) ObserveRequest(_, _, _ string, status int, _ time.Duration, _ int64) {
	o.status = status
}

func serve(h http.HandlerFunc, r *http.Request) (*httptest.ResponseRecorder, *observedStatus, string) {
	var log bytes.Buffer
	observer := &observedStatus{}
	rec := httptest.NewRecorder()
	web.Middleware(h, slog.New(slog.NewTextHandler(&log, nil)), observer).ServeHTTP(rec, r)
	return rec, observer, log.String()
}

func TestPanicBecomesA500AndALogRecord(t *testing.T) {
	t.Parallel()
	rec, observer, log := serve(func(http.ResponseWriter, *http.Request) { panic("boom") },
		httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	id := rec.Header().Get(web.RequestIDHeader)
	if rec.Code != http.StatusInternalServerError || observer.status != rec.Code {
		t.Errorf("got status %d, observed %d, want 500 for both", rec.Code, observer.status)
	}
	if id == "" || !strings.Contains(log, id) || !strings.Contains(log, "boom") {
		t.Errorf("log does not have the request id and the panic: %s", log)
	}
	if strings.Contains(rec.Body.String(), "boom") {
		t.Errorf("response contains the panic: %s", rec.Body)
	}
}

func TestConnectionCanBeHijacked(t *testing.T) {
	t.Parallel()
	observer := make(chan int, 1)
	server := httptest.NewServer(web.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\nhello")
		_ = conn.Close()
	}), slog.New(slog.DiscardHandler), statuses(observer)))
	defer server.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	response, err := io.ReadAll(conn)
	if err != nil || !strings.HasSuffix(string(response), "hello") {
		t.Errorf("got %q, %v from the connection, want hello at the end", response, err)
	}
	if status := <-observer; status != http.StatusSwitchingProtocols {
		t.Errorf("got observed status %d, want 101", status)
	}
}

// statuses is an observer that sends statuses to a channel.
type statuses chan int

func (s statuses) ObserveRequest(_, _, _ string, status int, _ time.Duration, _ int64) { s <- status }

func TestValidRequestIDIsKept(t *testing.T) {
	t.Parallel()
	for requestID, accepted := range map[string]bool{
		"abc-123": true, "": false, "two words": false, strings.Repeat("x", 65): false, "quo\"te": false,
		"new\x7fline": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header[web.RequestIDHeader] = []string{requestID}
		rec, _, _ := serve(func(http.ResponseWriter, *http.Request) {}, r)
		got := rec.Header().Get(web.RequestIDHeader)
		if (got == requestID) != accepted || got == "" {
			t.Errorf("request id %q: got %q, want the same: %v", requestID, got, accepted)
		}
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	h := web.CORS{Origins: []string{"https://console.example"}}.Handle(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			web.Expose(w.Header(), "X-Msg-Property-Colour")
		}), "X-Msg-Message-Id")
	do := func(method, origin string, header ...string) http.Header {
		r := httptest.NewRequest(method, "/", http.NoBody)
		r.Header.Set("Origin", origin)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Header()
	}
	simple := do(http.MethodGet, "https://console.example")
	if simple.Get("Access-Control-Allow-Origin") != "https://console.example" {
		t.Errorf("simple request: got headers %v, want origin https://console.example", simple)
	}
	for _, name := range []string{"X-Msg-Message-Id", "X-Msg-Property-Colour", web.RequestIDHeader} {
		if !strings.Contains(simple.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("header %s is not exposed: %v", name, simple)
		}
	}
	preflight := do(http.MethodOptions, "https://console.example",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
		"authorization, x-msg-property-colour")
	if preflight.Get("Access-Control-Allow-Headers") != "authorization, x-msg-property-colour" ||
		!strings.Contains(preflight.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight: got headers %v, want the requested headers and POST", preflight)
	}
	if foreign := do(http.MethodGet, "https://evil.example"); foreign.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("unknown origin: got headers %v, want no Access-Control-Allow-Origin", foreign)
	}
}
