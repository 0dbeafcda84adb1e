package messageapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"freshet/internal/access"
	"freshet/internal/audit"
	"freshet/internal/engine"
	"freshet/internal/engine/pebble/pebbletest"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
	"freshet/internal/messageapi"
	"freshet/internal/messaging"
	"freshet/internal/web"
)

// Where the tests live.
const (
	organization = "acme"
	instance     = "main"
	root         = "/admin/rest/topics/v1/"
)

var quiet = slog.New(slog.DiscardHandler)

// world is the surface over a real broker, engine and identity system.
type world struct {
	t        testing.TB
	identity *identitytest.World
	policy   *access.Policy
	engine   engine.Engine
	broker   *messaging.Broker
	api      *messageapi.API
	server   *httptest.Server
	log      *auditLog
	token    string // of whoever calls
	checked  bool   // hold every reply against the OpenAPI document
}

// auditLog remembers records.
type auditLog struct {
	mu      sync.Mutex
	records []audit.Record
}

func (l *auditLog) Record(r audit.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
}

func (l *auditLog) last() audit.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.records) == 0 {
		return audit.Record{}
	}
	return l.records[len(l.records)-1]
}

// newWorld makes one; edits change how the surface is set up.
func newWorld(t testing.TB, opts messaging.Options, edits ...func(*messageapi.Options)) *world {
	t.Helper()
	eng, err := pebbletest.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	opts.Logger = quiet
	broker, err := messaging.Open(t.Context(), eng, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	w := &world{
		t: t, identity: identitytest.New(t), policy: access.NewPolicy(), engine: eng, broker: broker,
		log: &auditLog{}, checked: true,
	}
	cluster := messageapi.Cluster{
		Broker:    broker,
		Scope:     access.Scope{Organization: organization, Instance: instance, Cluster: "prod"},
		Audiences: []string{identity.InstanceAudience(organization, instance)},
	}
	surface := messageapi.Options{
		Resolve:  func(*http.Request) (messageapi.Cluster, error) { return cluster, nil },
		Verifier: w.identity.Verifier, Policy: w.policy, Auditor: w.log,
		CORS: web.CORS{Origins: []string{"https://app.example"}},
	}
	for _, edit := range edits {
		edit(&surface)
	}
	w.api = messageapi.New(surface)
	mux := http.NewServeMux()
	w.api.Mount(mux)
	w.server = httptest.NewServer(web.Middleware(mux, quiet, nil))
	t.Cleanup(w.server.Close)
	w.token = w.account("boss", func(a *identity.Account) { a.Admin = true })
	return w
}

// account makes a service account and returns a token of it.
func (w *world) account(name string, edit ...func(*identity.Account)) string {
	w.t.Helper()
	a, _ := w.identity.Account(organization, name, edit...)
	return w.identity.Token(a, identity.InstanceAudience(organization, instance))
}

// principal is how the cluster's permissions name an account.
func (w *world) principal(name string) string {
	return w.identity.Issuer.PrincipalName(organization, name)
}

// as calls with another token.
func (w *world) as(token string) *world {
	other := *w
	other.token = token
	return &other
}

// reply is a response that was read.
type reply struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   string
}

// call makes a request. Headers come in pairs.
func (w *world) call(method, path, body string, headers ...string) *reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = append(req.Header[headers[i]], headers[i+1])
	}
	res, err := w.server.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.checked {
		validate(w.t, req, body, res, b)
	}
	return &reply{t: w.t, what: method + " " + path, status: res.StatusCode, header: res.Header, body: string(b)}
}

// want demands a status; errors must have a reason.
func (r *reply) want(status int) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: status %d, want %d; body %s", r.what, r.status, status, r.body)
	}
	if status >= 400 {
		var e struct{ Reason string }
		if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Reason == "" {
			r.t.Errorf("%s: %d without a reason: %s", r.what, status, r.body)
		}
		if r.header.Get("Content-Type") != "application/json" {
			r.t.Errorf("%s: error of content type %s", r.what, r.header.Get("Content-Type"))
		}
	}
	if status == http.StatusUnauthorized && !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer") {
		r.t.Errorf("%s: 401 without a challenge", r.what)
	}
	return r
}

// is demands a body.
func (r *reply) is(body string) *reply {
	r.t.Helper()
	if r.body != body {
		r.t.Errorf("%s: body %s, want %s", r.what, r.body, body)
	}
	return r
}

// says demands headers, in pairs; "" means that there is none.
func (r *reply) says(headers ...string) *reply {
	r.t.Helper()
	for i := 0; i < len(headers); i += 2 {
		if got := r.header.Get(headers[i]); got != headers[i+1] {
			r.t.Errorf("%s: header %s is %q, want %q", r.what, headers[i], got, headers[i+1])
		}
	}
	return r
}

// into decodes the body.
func (r *reply) into(v any) *reply {
	r.t.Helper()
	in := json.NewDecoder(bytes.NewReader([]byte(r.body)))
	if err := in.Decode(v); err != nil {
		r.t.Fatalf("%s: %v in %s", r.what, err, r.body)
	}
	return r
}

func (r *reply) id() string { return r.header.Get("X-Msg-Message-Id") }

func parseID(s string) (string, error) { return messageapi.ParseID([]byte(s)) }
