// Package brokertest lets tests of messageapi and adminapi call both surfaces over a
// real broker, engine and identity system. It validates every response against the
// OpenAPI document. Only tests import it. Its only lock is AuditLog.mu, which protects
// AuditLog.Records.
package brokertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/broker/groups"
	"freshet/internal/broker/history"
	"freshet/internal/broker/messaging"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/internal/ops/audit"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble/pebbletest"
	"freshet/internal/surfaces/adminapi"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/messageapi"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/pipeline/pipelinetest"
)

// The organization and instance of the tests' cluster, and the path prefix of messages.
const (
	Organization = "acme"
	Instance     = "main"
	Root         = "/admin/rest/topics/v1/"
)

// DiscardLogger is a logger that discards everything.
var DiscardLogger = slog.New(slog.DiscardHandler)

// Harness has both surfaces with a real broker, engine and identity system.
type Harness struct {
	T                 testing.TB
	Identity          *identitytest.World
	Policy            *access.Policy
	Broker            *messaging.Broker
	API               http.Handler // both surfaces, without web.Middleware
	Server            *httptest.Server
	Log               *AuditLog
	Token             string // the caller's token
	ValidateResponses bool   // validate every response against the OpenAPI document

	engine engine.Engine
	groups *atomic.Pointer[groups.Coordinator]
}

// AuditLog stores audit records in memory.
type AuditLog struct {
	mu      sync.Mutex
	Records []audit.Record
}

// Record implements pipeline.Auditor.
func (l *AuditLog) Record(r audit.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Records = append(l.Records, r)
}

// Last returns the newest record.
func (l *AuditLog) Last() audit.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.Records) == 0 {
		return audit.Record{}
	}
	return l.Records[len(l.Records)-1]
}

// New returns a World with a token of the organization's administrator; edits change
// the options of the surfaces.
func New(t testing.TB, opts messaging.Options, edits ...func(*messageapi.Options)) *Harness {
	t.Helper()
	eng, release, err := pebbletest.OpenMemoryBudget(messaging.Splitter{}, opts.Unpacking)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = eng.Close()
		release()
	})
	opts.Logger = DiscardLogger
	broker, err := messaging.Open(t.Context(), eng, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	w := &Harness{
		T: t, Identity: identitytest.New(t), Policy: access.NewPolicy(), Broker: broker, Log: &AuditLog{},
		ValidateResponses: true,
		engine:            eng, groups: new(atomic.Pointer[groups.Coordinator]),
	}
	messages := messageapi.Options{Resolver: resolver(broker, w.groups.Load), Options: pipeline.Options{
		Authenticator: w.Identity.Verifier, Authorizer: w.Policy, Auditor: w.Log,
	}}
	for _, edit := range edits {
		edit(&messages)
	}
	w.API = dispatch(messageapi.New(messages),
		adminapi.New(adminapi.Options{
			Options: messages.Options, Resolver: messages.Resolver,
			Accounts: w.Identity.Directory,
		}))
	w.Server = httptest.NewServer(web.Middleware(w.API, DiscardLogger, nil))
	t.Cleanup(w.Server.Close)
	w.Token = w.Account("boss", func(a *identity.Account) { a.Admin = true })
	return w
}

// Groups returns the coordinator of the cluster's consumer groups. The first call
// enables the Kafka protocol on the cluster.
func (w *Harness) Groups() *groups.Coordinator {
	w.T.Helper()
	if opened := w.groups.Load(); opened != nil {
		return opened
	}
	coordinator, err := groups.Open(w.T.Context(), w.engine,
		groups.Options{InitialDelay: time.Millisecond, Logger: DiscardLogger})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { _ = coordinator.Close() })
	w.groups.Store(coordinator)
	return coordinator
}

// openGroups implements brokerhttp.Groups with an open coordinator.
type openGroups struct{ coordinator *groups.Coordinator }

// Coordinator implements brokerhttp.Groups.
func (g openGroups) Coordinator() (*groups.Coordinator, error) { return g.coordinator, nil }

// Resolver returns a resolver that finds the same cluster for every request.
func Resolver(broker *messaging.Broker) brokerhttp.Resolver {
	return resolver(broker, func() *groups.Coordinator { return nil })
}

func resolver(broker *messaging.Broker, coordinator func() *groups.Coordinator) brokerhttp.Resolver {
	cluster := brokerhttp.Cluster{
		Catalogue: broker.Catalogue, Grants: broker.Grants, Schemas: broker.Schemas,
		Producer: broker.Producer, Consumer: broker.Consumer, Searcher: broker.Searcher,
		Replayer: broker.Replayer, Kafka: broker.Kafka,
		Statistics: broker.Statistics, Limits: broker.Limits(),
		Scope:     access.Scope{Organization: Organization, Instance: Instance, Cluster: "prod"},
		Audiences: []string{identity.InstanceAudience(Organization, Instance)},
		Members:   brokerhttp.SingleServer{},
		UID:       "uid", History: history.New(history.Options{Logger: DiscardLogger}),
	}
	return pipelinetest.ResolverFunc[brokerhttp.Cluster](func(*http.Request) (brokerhttp.Cluster, error) {
		resolved := cluster
		if opened := coordinator(); opened != nil {
			resolved.Groups = openGroups{opened}
		}
		return resolved, nil
	})
}

// dispatch dispatches requests to the two surfaces by path, as the server does.
func dispatch(messages, admin http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/admin/rest/") {
			messages.ServeHTTP(w, r)
			return
		}
		admin.ServeHTTP(w, r)
	})
}

// Account creates a service account and returns a token for it.
func (w *Harness) Account(name string, edit ...func(*identity.Account)) string {
	w.T.Helper()
	a, _ := w.Identity.Account(Organization, name, edit...)
	return w.Identity.Token(a, identity.InstanceAudience(Organization, Instance))
}

// Principal returns the name of an account in the cluster's permissions.
func (w *Harness) Principal(name string) string {
	return w.Identity.Issuer.PrincipalName(Organization, name)
}

// WithToken returns a copy that calls with another token.
func (w *Harness) WithToken(token string) *Harness {
	other := *w
	other.Token = token
	return &other
}

// Response is a response with its body.
type Response struct {
	T       testing.TB
	Request string
	Status  int
	Header  http.Header
	Body    string
}

// Call makes a request. headers are pairs of name and value.
func (w *Harness) Call(method, path, body string, headers ...string) *Response {
	w.T.Helper()
	req, err := http.NewRequestWithContext(w.T.Context(), method, w.Server.URL+path, strings.NewReader(body))
	if err != nil {
		w.T.Fatal(err)
	}
	if w.Token != "" {
		req.Header.Set("Authorization", "Bearer "+w.Token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header[headers[i]] = append(req.Header[headers[i]], headers[i+1])
	}
	res, err := w.Server.Client().Do(req)
	if err != nil {
		w.T.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.T.Fatal(err)
	}
	if w.ValidateResponses {
		validate(w.T, req, body, res, b)
	}
	return &Response{T: w.T, Request: method + " " + path, Status: res.StatusCode, Header: res.Header, Body: string(b)}
}

// WantStatus fails the test if the status differs, or if an error has no reason.
func (r *Response) WantStatus(status int) *Response {
	r.T.Helper()
	if r.Status != status {
		r.T.Fatalf("%s: status %d, want %d; body %s", r.Request, r.Status, status, r.Body)
	}
	if status >= 400 {
		var e struct{ Reason string }
		if err := json.Unmarshal([]byte(r.Body), &e); err != nil || e.Reason == "" {
			r.T.Errorf("%s: got %d without a reason: %s", r.Request, status, r.Body)
		}
		if r.Header.Get("Content-Type") != "application/json" {
			r.T.Errorf("%s: got an error of content type %s, want application/json", r.Request,
				r.Header.Get("Content-Type"))
		}
	}
	if status == http.StatusUnauthorized && !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer") {
		r.T.Errorf("%s: got 401 without a Bearer challenge", r.Request)
	}
	return r
}

// WantBody fails the test if the body differs.
func (r *Response) WantBody(body string) *Response {
	r.T.Helper()
	if r.Body != body {
		r.T.Errorf("%s: body %s, want %s", r.Request, r.Body, body)
	}
	return r
}

// WantHeaders fails the test if headers differ. They are pairs of name and value; the value ""
// means that the response does not have the header.
func (r *Response) WantHeaders(headers ...string) *Response {
	r.T.Helper()
	for i := 0; i < len(headers); i += 2 {
		if got := r.Header.Get(headers[i]); got != headers[i+1] {
			r.T.Errorf("%s: header %s is %q, want %q", r.Request, headers[i], got, headers[i+1])
		}
	}
	return r
}

// Decode decodes the body.
func (r *Response) Decode(v any) *Response {
	r.T.Helper()
	in := json.NewDecoder(bytes.NewReader([]byte(r.Body)))
	if err := in.Decode(v); err != nil {
		r.T.Fatalf("%s: %v in %s", r.Request, err, r.Body)
	}
	return r
}

// MessageID returns the message id of the response.
func (r *Response) MessageID() string { return r.Header.Get("X-Msg-Message-Id") }

// CreateTopic creates a topic with a subscription s at its start, and returns the path of its
// messages.
func (w *Harness) CreateTopic(topic string, partitions int) string {
	w.T.Helper()
	path := "/admin/v2/persistent/public/default/" + topic
	if partitions > 0 {
		w.Call("PUT", path+"/partitions", fmt.Sprint(partitions)).WantStatus(204)
	} else {
		w.Call("PUT", path, "").WantStatus(204)
	}
	w.Call("PUT", path+"/subscription/s", `"earliest"`).WantStatus(204)
	return Root + "public/default/" + topic
}

// Bind binds a role to an account.
func (w *Harness) Bind(account, role string, restriction access.Restriction) {
	w.T.Helper()
	restriction.Organization = Organization
	err := w.Policy.SetBinding(access.Binding{
		Organization: Organization, Name: account + "-" + role, Role: role, RoleKind: "ClusterRole",
		Subjects:    []access.Subject{{Kind: access.SubjectServiceAccount, Name: account}},
		Restriction: &restriction,
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// Serve sends a request to the surfaces without a server. It fails the test on an
// internal error: no request may cause one.
func (w *Harness) Serve(method string, u *url.URL, header http.Header, body []byte) *httptest.ResponseRecorder {
	w.T.Helper()
	req := &http.Request{
		Method: method, URL: u, Header: header, Host: "x", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	header.Set("Authorization", "Bearer "+w.Token)
	res := httptest.NewRecorder()
	w.API.ServeHTTP(res, req.WithContext(w.T.Context()))
	if res.Code == http.StatusInternalServerError || res.Code < 200 {
		w.T.Fatalf("%s %s: status %d: %s", method, u, res.Code, res.Body)
	}
	if res.Code >= 400 && !strings.HasPrefix(res.Body.String(), `{"reason":"`) {
		w.T.Fatalf("%s %s: status %d without a reason: %s", method, u, res.Code, res.Body)
	}
	return res
}
