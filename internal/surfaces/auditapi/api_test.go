package auditapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/pipeline"
)

// fixture is the API over a real audit trail, with tokens of a system administrator, the
// administrators of two organizations and a user without the permission.
type fixture struct {
	t      *testing.T
	api    *auditapi.API
	log    *audit.Log
	tokens map[string]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	log, err := audit.Open(audit.Options{Path: filepath.Join(t.TempDir(), "audit.log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	world := identitytest.New(t)
	policy := access.NewPolicy()
	h := &fixture{t: t, log: log, tokens: map[string]string{"nobody": ""}}
	for name, edit := range map[string]func(*identity.Account){
		"root":   func(a *identity.Account) { a.System = true },
		"boss":   func(a *identity.Account) { a.Admin = true },
		"viewer": func(*identity.Account) {},
		"other":  func(a *identity.Account) { a.Organization, a.Admin = "globex", true },
	} {
		account, _ := world.Account("acme", name, edit)
		h.tokens[name] = world.Token(account, identitytest.IssuerURL)
	}
	err = policy.SetBinding(access.Binding{
		Organization: "acme", Name: "viewer", RoleKind: "ClusterRole", Role: "org-readonly",
		Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: "viewer"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.api = auditapi.New(auditapi.Options{
		Trail: log, Audiences: []string{identitytest.IssuerURL},
		Options: pipeline.Options{Authenticator: world.Verifier, Authorizer: policy, Auditor: log},
	})
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, r := range []audit.Record{
		{Organization: "acme", Verb: "create", Resource: "apikeys", Decision: audit.Allowed},
		{Organization: "acme", Verb: "delete", Resource: "apikeys", Decision: audit.Denied},
		{Organization: "globex", Verb: "create", Resource: "users", Decision: audit.Allowed},
		{Verb: "issue", Resource: "tokens", Decision: audit.Denied},
	} {
		r.Time, r.Surface, r.RequestID = begin.Add(time.Duration(i)*time.Hour), "resources", string(rune('a'+i))
		log.Record(r)
	}
	return h
}

type response struct {
	Records []audit.Record `json:"records"`
	Until   time.Time      `json:"until"`
	Reason  string         `json:"reason"`
	Message string         `json:"message"`
}

func (h *fixture) get(user, query string) (int, response) {
	h.t.Helper()
	return h.do(http.MethodGet, "/audit/v1alpha1/records?"+query, user)
}

func (h *fixture) do(method, target, user string) (int, response) {
	h.t.Helper()
	r := httptest.NewRequest(method, target, http.NoBody)
	if token := h.tokens[user]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.api.ServeHTTP(w, r)
	validate(h.t, r, w.Result(), w.Body.Bytes())
	var a response
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		h.t.Fatalf("%s %s: %v in %s", method, target, err, w.Body)
	}
	return w.Code, a
}

func ids(records []audit.Record) string {
	var b strings.Builder
	for _, r := range records {
		if r.Surface == "resources" {
			b.WriteString(r.RequestID)
		}
	}
	return b.String()
}

func TestCallersSeeTheirOrganization(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, c := range []struct {
		name, who, query string
		status           int
		want             string
	}{
		{"all organizations", "root", "", 200, "dcba"},
		{"one organization", "root", "organization=acme", 200, "ba"},
		{"own organization", "boss", "", 200, "ba"},
		{"own organization by name", "boss", "organization=acme", 200, "ba"},
		{"another organization", "boss", "organization=globex", 403, ""},
		{"own organization of the other administrator", "other", "", 200, "c"},
		{"without the permission", "viewer", "", 403, ""},
		{"without a token", "nobody", "", 401, ""},
		{"denials", "root", "decision=deny&surface=resources", 200, "db"},
		{"by verb", "boss", "verb=create", 200, "a"},
		{"by resource", "root", "resource=users", 200, "c"},
		{"by request", "root", "requestId=d", 200, "d"},
		{"since", "root", "since=2026-01-01T02:00:00Z&surface=resources", 200, "dc"},
		{"until", "root", "until=2026-01-01T02:00:00Z", 200, "ba"},
		{"empty filter", "boss", "verb=", 200, "ba"},
		{"nothing", "boss", "verb=fly", 200, ""},
		{"unknown filter", "root", "orgnization=acme", 400, ""},
		{"twice", "root", "verb=a&verb=b", 400, ""},
		{"no number", "root", "limit=many", 400, ""},
		{"no records", "root", "limit=0", 400, ""},
		{"too many", "root", "limit=1001", 400, ""},
		{"no time", "root", "since=yesterday", 400, ""},
		{"no decision", "root", "decision=maybe", 400, ""},
		{"broken query", "root", "verb=%zz", 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, a := h.get(c.who, c.query)
			if status != c.status || ids(a.Records) != c.want {
				t.Errorf("got %d %q %s, want %d %q", status, ids(a.Records), a.Message, c.status, c.want)
			}
		})
	}
	// The denials above wrote records of their own.
	_, a := h.get("boss", "surface=audit")
	if len(a.Records) != 1 || a.Records[0].Permission != string(access.ReadAudit) || a.Records[0].Status != 403 ||
		!strings.HasPrefix(a.Records[0].Principal, "viewer@acme.") {
		t.Errorf("denials in acme: got %+v, want one record of viewer with %s and status 403", a.Records,
			access.ReadAudit)
	}
	if _, a := h.get("root", "surface=audit"); len(a.Records) != 3 {
		t.Errorf("all denials: got %+v, want 3 records", a.Records)
	}
}

func TestPagesFollowEachOther(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	var got string
	query := url.Values{"limit": {"1"}, "surface": {"resources"}}
	for range 5 {
		_, a := h.get("root", query.Encode())
		got += ids(a.Records)
		if a.Until.IsZero() {
			break
		}
		query.Set("until", a.Until.Format(time.RFC3339Nano))
	}
	if got != "dcba" {
		t.Errorf("got pages %q, want %q", got, "dcba")
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for target, want := range map[string]int{
		"GET /audit":                    404,
		"GET /audit/v1alpha1/records/x": 404,
		"POST /audit/v1alpha1/records":  405,
		"PUT /audit/v2/records":         404,
	} {
		method, path, _ := strings.Cut(target, " ")
		if status, a := h.do(method, path, "root"); status != want || a.Reason == "" {
			t.Errorf("%s: got %d %+v, want %d with a reason", target, status, a, want)
		}
	}
	w := httptest.NewRecorder()
	h.api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/audit/v1alpha1/openapi.yaml", http.NoBody))
	if w.Code != 200 || !strings.HasPrefix(w.Body.String(), "openapi: 3.1") {
		t.Errorf("OpenAPI document: got %d %.40q, want 200", w.Code, w.Body)
	}
	off := auditapi.New(
		auditapi.Options{Options: pipeline.Options{
			Authenticator: systemAuthenticator{},
			Authorizer:    access.NewPolicy(),
		}})
	w = httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/audit/v1alpha1/records", http.NoBody)
	r.Header.Set("Authorization", "Bearer root")
	off.ServeHTTP(w, r)
	if w.Code != http.StatusNotFound {
		t.Errorf("without a trail: got %d %s, want %d", w.Code, w.Body, http.StatusNotFound)
	}
}

// systemAuthenticator accepts every token as that of the system administrator.
type systemAuthenticator struct{}

func (systemAuthenticator) Authenticate(context.Context, string, ...string) (*identity.Principal, error) {
	return &identity.Principal{Name: "root", System: true}, nil
}

var document = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromFile("../../../api/openapi/audit.yaml")
})

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// validate checks a response against the OpenAPI document.
func validate(t *testing.T, req *http.Request, res *http.Response, body []byte) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	item := doc.Paths.Value(req.URL.Path)
	if item == nil || item.GetOperation(req.Method) == nil {
		return
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: req,
			Route: &routers.Route{
				Spec: doc, Path: req.URL.Path, PathItem: item, Method: req.Method,
				Operation: item.GetOperation(req.Method),
			},
		},
		Status:  res.StatusCode,
		Header:  res.Header,
		Body:    io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		t.Errorf("%s %s: response does not match the OpenAPI document: %v", req.Method, req.URL, err)
	}
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"", "limit=5", "since=2026-01-01T00:00:00Z&until=x", "verb=%00&verb",
		"decision=deny&organization=%2e%2e", "limit=-0",
	} {
		f.Add(seed)
	}
	api := auditapi.New(
		auditapi.Options{Options: pipeline.Options{
			Authenticator: systemAuthenticator{},
			Authorizer:    access.NewPolicy(),
		}})
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, "/audit/v1alpha1/records", http.NoBody)
		r.URL.RawQuery = query
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest && w.Code != http.StatusNotFound {
			t.Errorf("%q: got %d %s, want %d or %d", query, w.Code, w.Body, http.StatusBadRequest,
				http.StatusNotFound)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: response is not valid JSON: %s", query, w.Body)
		}
	})
}
