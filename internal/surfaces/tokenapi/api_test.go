package tokenapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/identitytest"
	"freshet/internal/identity/signin"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/tokenapi"
)

const (
	base  = identitytest.IssuerURL
	plane = "urn:vendor:messaging:acme:prod"
)

// planes are the instances of the tests with the lifetimes of their tokens.
type planes map[string]time.Duration

func (p planes) TokenLifetime(organization, instance string) (time.Duration, bool) {
	lifetime, ok := p[organization+"/"+instance]
	return lifetime, ok
}

// fixture is a mounted API with its audit records and its log.
type fixture struct {
	*identitytest.World
	t           testing.TB
	handler     http.Handler
	account     *identity.Account
	credentials identity.Credentials

	mu      sync.Mutex
	records []audit.Record
	log     bytes.Buffer
}

func newFixture(t testing.TB, edit ...func(*tokenapi.Options)) *fixture {
	t.Helper()
	f := &fixture{World: identitytest.New(t), t: t}
	f.account, f.credentials = f.Account("acme", "ci")
	service := signin.New(signin.Options{Directory: f.Directory, Issuer: f.Issuer, Log: slog.New(slog.DiscardHandler)})
	opts := tokenapi.Options{
		Issuer: f.Issuer, Directory: f.Directory, Sealer: f.Sealer,
		Audiences: []string{base, "https://api.example.com"},
		Instances: planes{"acme/prod": time.Hour, "acme/plain": 0, "other/prod": 0},
		Auditor:   f,
		Subjects:  service.Subjects, Codes: service.Codes, Devices: service.Devices, Grants: service.Grants,
		Authenticator: f.Verifier, Accepted: []string{base, identity.AnyOrganization},
	}
	for _, e := range edit {
		e(&opts)
	}
	api, err := tokenapi.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	f.handler = web.Middleware(mounted(api),
		slog.New(slog.NewJSONHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	return f
}

// Record implements pipeline.Auditor.
func (f *fixture) Record(r audit.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
}

// mounted serves the API at its patterns, and another handler at all other paths.
func mounted(api http.Handler) http.Handler {
	var routes []web.Route[http.Handler]
	for _, pattern := range tokenapi.Patterns() {
		routes = append(routes, web.Route[http.Handler]{Pattern: pattern, Value: api})
	}
	routes = append(routes,
		web.Route[http.Handler]{Pattern: "/...", Value: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "other handler", http.StatusTeapot)
		})})
	router := web.NewRouter(routes, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var path web.Path
		path.Parse(r.URL)
		router.Find(r.Method, &path).Value.ServeHTTP(w, r)
	})
}

func (f *fixture) do(r *http.Request) *httptest.ResponseRecorder {
	f.t.Helper()
	w := httptest.NewRecorder()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	f.handler.ServeHTTP(w, r)
	validate(f.t, r, body, w.Result(), w.Body.Bytes())
	return w
}

func (f *fixture) post(contentType, body string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	f.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for _, e := range edit {
		e(r)
	}
	return f.do(r)
}

func (f *fixture) fields(audience string) map[string]string {
	m := map[string]string{
		"grant_type": "client_credentials", "client_id": f.credentials.ClientID,
		"client_secret": f.credentials.ClientSecret.Reveal(),
	}
	if audience != "" {
		m["audience"] = audience
	}
	return m
}

func jsonBody(fields map[string]string) string {
	data, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func formBody(fields map[string]string) string {
	v := url.Values{}
	for name, value := range fields {
		v.Set(name, value)
	}
	return v.Encode()
}

func without(m map[string]string, names ...string) map[string]string {
	out := make(map[string]string)
	for k, v := range m {
		out[k] = v
	}
	for _, n := range names {
		delete(out, n)
	}
	return out
}

func basic(id, secret string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret)) }
}

type tokenResponse struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"`

	RefreshToken string `json:"refresh_token"`

	Error       string `json:"error"`
	Description string `json:"error_description"`
}

func decode(t testing.TB, w *httptest.ResponseRecorder) tokenResponse {
	t.Helper()
	var r tokenResponse
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	if got := w.Header()["Content-Type"]; len(got) != 1 || got[0] != "application/json" {
		t.Errorf("got Content-Type %q, want application/json", got)
	}
	return r
}

func (f *fixture) token(t testing.TB, w *httptest.ResponseRecorder, audience string) *identity.Principal {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("got status %d: %s, want 200", w.Code, w.Body)
	}
	r := decode(t, w)
	if r.TokenType != "Bearer" || r.ExpiresIn <= 0 {
		t.Errorf("got response %+v, want a Bearer token that expires later", r)
	}
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Error("token response has no Cache-Control: no-store")
	}
	p, err := f.Verifier.Authenticate(context.Background(), r.AccessToken, audience)
	if err != nil {
		t.Fatalf("token was rejected for audience %s: %v", audience, err)
	}
	return p
}

func TestEveryFormOfTokenRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id, secret := f.credentials.ClientID, f.credentials.ClientSecret.Reveal()
	const form = "application/x-www-form-urlencoded"
	inHeader := without(f.fields(base), "client_id", "client_secret")
	tests := map[string]*httptest.ResponseRecorder{
		"JSON":                    f.post("application/json", jsonBody(f.fields(base))),
		"JSON with charset":       f.post("application/json; charset=utf-8", jsonBody(f.fields(base))),
		"JSON without a type":     f.post("", jsonBody(f.fields(base))),
		"JSON labelled as a form": f.post(form, jsonBody(f.fields(base))),
		"JSON with spaces":        f.post("application/json", "\n "+jsonBody(f.fields(base))+"\n"),
		"JSON with more": f.post("application/json",
			strings.Replace(jsonBody(f.fields(base)), "{", `{"scope":"x","n":[1,{"a":null}],`, 1)),
		"form":                f.post(form, formBody(f.fields(base))),
		"form with more":      f.post(form, formBody(f.fields(base))+"&x=1&x=2"),
		"form without a type": f.post("", formBody(f.fields(base))),
		"Basic and form":      f.post(form, formBody(inHeader), basic(id, secret)),
		"Basic and JSON":      f.post("application/json", jsonBody(inHeader), basic(id, secret)),
		"Basic and the id in the body": f.post(form, formBody(without(f.fields(base), "client_secret")),
			basic(id, secret)),
		"Basic in capitals": f.post(form, formBody(inHeader), func(r *http.Request) {
			r.Header.Set("Authorization", "BASIC "+base64.StdEncoding.EncodeToString([]byte(id+":"+secret)))
		}),
		"a Bearer header is ignored": f.post("application/json", jsonBody(f.fields(base)),
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }),
	}
	for name, w := range tests {
		t.Run(name, func(t *testing.T) {
			if p := f.token(t, w, base); p.Name != "ci@acme.127.0.0.1:8080" {
				t.Errorf("got principal %+v, want ci@acme.127.0.0.1:8080", p)
			}
			if got := decode(t, w).ExpiresIn; got < 86399 || got > 86400 {
				t.Errorf("got expires_in %d, want 86399 or 86400", got)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id, secret := f.credentials.ClientID, f.credentials.ClientSecret.Reveal()
	good := f.fields(base)
	set := func(name, value string) map[string]string { m := without(good); m[name] = value; return m }
	const form = "application/x-www-form-urlencoded"
	_, foreign := f.Account("other", "x")
	tests := map[string]struct {
		w      *httptest.ResponseRecorder
		status int
		code   string
		basic  bool
	}{
		"empty body":    {f.post("application/json", ""), 400, "invalid_request", false},
		"empty object":  {f.post("application/json", "{}"), 400, "invalid_request", false},
		"broken JSON":   {f.post("application/json", `{"grant_type":`), 400, "invalid_request", false},
		"JSON and more": {f.post("application/json", jsonBody(good)+"{}"), 400, "invalid_request", false},
		"JSON and text": {f.post("application/json", jsonBody(good)+"x"), 400, "invalid_request", false},
		"number": {
			f.post("application/json", `{"grant_type":"client_credentials","client_id":5}`), 400,
			"invalid_request", false,
		},
		"JSON field twice": {f.post("application/json",
			strings.Replace(jsonBody(good), "{", `{"client_id":"x",`, 1)), 400, "invalid_request", false},
		"form field twice": {f.post(form, formBody(good)+"&audience=x"), 400, "invalid_request", false},
		"bad form":         {f.post(form, "grant_type=%zz"), 400, "invalid_request", false},
		"XML":              {f.post("application/xml", "<x/>"), 400, "invalid_request", false},
		"no grant": {
			f.post("application/json", jsonBody(without(good, "grant_type"))), 400,
			"invalid_request", false,
		},
		"null grant": {f.post("application/json", `{"grant_type":null}`), 400, "invalid_request", false},
		"other grant": {
			f.post("application/json", jsonBody(set("grant_type", "password"))), 400,
			"unsupported_grant_type", false,
		},
		"long parameter": {
			f.post("application/json", jsonBody(set("audience", strings.Repeat("x", 3000)))), 400,
			"invalid_request", false,
		},
		"large body": {
			f.post("application/json", jsonBody(set("x", strings.Repeat("x", 20000)))), 413,
			"invalid_request", false,
		},
		"no client": {
			f.post("application/json", jsonBody(without(good, "client_id", "client_secret"))),
			401, "invalid_client", false,
		},
		"no secret": {
			f.post("application/json", jsonBody(without(good, "client_secret"))), 401,
			"invalid_client", false,
		},
		"empty secret": {f.post("application/json", jsonBody(set("client_secret", ""))), 401, "invalid_client", false},
		"unknown client": {
			f.post("application/json", jsonBody(set("client_id", "nobody"))), 401,
			"invalid_client", false,
		},
		"long client": {
			f.post("application/json", jsonBody(set("client_id", strings.Repeat("x", 300)))), 401,
			"invalid_client", false,
		},
		"wrong secret": {
			f.post("application/json", jsonBody(set("client_secret", "wrong-secret"))), 401,
			"invalid_client", false,
		},
		"someone else's secret": {f.post("application/json",
			jsonBody(set("client_secret", foreign.ClientSecret.Reveal()))), 401, "invalid_client", false},
		"secret in the query": {f.post(form, formBody(without(good, "client_secret")), func(r *http.Request) {
			r.URL.RawQuery = url.Values{"client_secret": {secret}}.Encode()
		}), 401, "invalid_client", false},
		"wrong secret by Basic": {f.post(form, formBody(without(good, "client_id", "client_secret")),
			basic(id, "wrong-secret")), 401, "invalid_client", true},
		"Basic is not base64": {f.post(form, formBody(without(good, "client_id", "client_secret")),
			func(r *http.Request) { r.Header.Set("Authorization", "Basic ***") }), 401, "invalid_client", true},
		"Basic without colon": {f.post(form, formBody(without(good, "client_id", "client_secret")),
			func(r *http.Request) { r.Header.Set("Authorization", "Basic eA==") }), 401, "invalid_client", true},
		"Basic with bad escapes": {f.post(form, formBody(without(good, "client_id", "client_secret")),
			func(r *http.Request) { r.SetBasicAuth("%zz", "x") }), 401, "invalid_client", true},
		"both ways": {f.post(form, formBody(good), basic(id, secret)), 400, "invalid_request", false},
		"another id in the body": {f.post(form, formBody(without(set("client_id", "x"), "client_secret")),
			basic(id, secret)), 400, "invalid_request", false},
		"unknown audience": {
			f.post("application/json", jsonBody(f.fields("https://elsewhere.example.com"))), 403,
			"access_denied", false,
		},
		"audience is a path": {
			f.post("application/json", jsonBody(f.fields(base+"/apis"))), 403,
			"access_denied", false,
		},
		"audience is a word": {
			f.post("application/json", jsonBody(f.fields("everything"))), 403,
			"access_denied", false,
		},
		"unknown instance": {
			f.post("application/json", jsonBody(f.fields("urn:vendor:messaging:acme:none"))),
			403, "access_denied", false,
		},
		"foreign instance": {
			f.post("application/json", jsonBody(f.fields("urn:vendor:messaging:other:prod"))),
			403, "access_denied", false,
		},
		"whole organization": {
			f.post("application/json", jsonBody(f.fields("urn:vendor:messaging:acme"))), 403,
			"access_denied", false,
		},
		"foreign instance in the scope": {f.post(form, formBody(map[string]string{
			"grant_type": "client_credentials", "client_id": id, "client_secret": secret,
			"scope": "urn:vendor:messaging:other:prod",
		})), 403, "access_denied", false},
		"two instances in the scope": {f.post(form, formBody(map[string]string{
			"grant_type": "client_credentials", "client_id": id, "client_secret": secret,
			"scope": plane + " urn:vendor:messaging:acme:plain",
		})), 400, "invalid_request", false},
		"any organization": {
			f.post("application/json", jsonBody(f.fields(identity.AnyOrganization))), 403,
			"access_denied", false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := decode(t, tc.w)
			if tc.w.Code != tc.status || r.Error != tc.code || r.Description == "" || r.AccessToken != "" {
				t.Errorf("got status %d, %+v, want %d %s", tc.w.Code, r, tc.status, tc.code)
			}
			if got := tc.w.Header().Get("WWW-Authenticate"); (got != "") != tc.basic {
				t.Errorf("got WWW-Authenticate %q, want one: %v", got, tc.basic)
			}
			if tc.w.Header().Get("Cache-Control") != "no-store" {
				t.Error("error response has no Cache-Control: no-store")
			}
		})
	}
	f.noSecrets(t, tests["wrong secret"].w, secret, foreign.ClientSecret.Reveal(), "wrong-secret")
	for name, tc := range tests {
		if body := tc.w.Body.String(); strings.Contains(body, secret) || strings.Contains(body, "wrong-secret") {
			t.Errorf("%s: response contains the secret", name)
		}
	}
}

// noSecrets checks that neither the log nor the audit records contain the secrets.
func (f *fixture) noSecrets(t *testing.T, _ *httptest.ResponseRecorder, secrets ...string) {
	t.Helper()
	f.mu.Lock()
	records, err := json.Marshal(f.records)
	f.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if strings.Contains(f.log.String(), secret) {
			t.Errorf("log contains %q", secret)
		}
		if bytes.Contains(records, []byte(secret)) {
			t.Errorf("audit records contain %q", secret)
		}
	}
}

func TestSecretInTheWrongFieldIsNotLogged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := f.credentials.ClientSecret.Reveal()
	w := f.post("application/json", jsonBody(map[string]string{
		"grant_type": "client_credentials", "client_id": secret, "client_secret": f.credentials.ClientID,
		"audience": base,
	}))
	if w.Code != 401 {
		t.Fatalf("status %d, want 401", w.Code)
	}
	f.noSecrets(t, w, secret)
	if len(f.records) != 1 || f.records[0].Decision != audit.Denied || f.records[0].Status != 401 ||
		f.records[0].Surface != "token" {
		t.Errorf("got audit records %+v, want one denial of the surface token with status 401", f.records)
	}
}

func TestAudiences(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	system, systemCredentials := f.Account("default", "admin", func(a *identity.Account) { a.System = true })
	_ = system
	tests := map[string]struct {
		asked, good, bad string
		lifetime         int
		host             string
	}{
		"resource API":      {base, base, plane, 86400, ""},
		"default":           {"", base, plane, 86400, ""},
		"slash at the end":  {base + "/", base, plane, 86400, ""},
		"alias":             {"https://api.example.com", base, plane, 86400, ""},
		"alias as asked":    {"https://API.example.com:443/", "https://API.example.com:443/", plane, 86400, ""},
		"own host":          {"http://localhost:8080", base, plane, 86400, "localhost:8080"},
		"own host by https": {"https://cloud.test", base, plane, 86400, "cloud.test"},
		"data plane":        {plane, plane, base, 3600, ""},
		"data plane, default times": {
			"urn:vendor:messaging:acme:plain", "urn:vendor:messaging:acme:plain",
			plane, 86400, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := f.post("application/json", jsonBody(f.fields(tc.asked)), func(r *http.Request) {
				if tc.host != "" {
					r.Host = tc.host
				}
			})
			f.token(t, w, tc.good)
			r := decode(t, w)
			if r.ExpiresIn < tc.lifetime-1 || r.ExpiresIn > tc.lifetime {
				t.Errorf("got expires_in %d, want %d", r.ExpiresIn, tc.lifetime)
			}
			if _, err := f.Verifier.Authenticate(context.Background(), r.AccessToken, tc.bad); err == nil {
				t.Errorf("token was accepted for audience %s too", tc.bad)
			}
		})
	}
	for name, tc := range map[string]struct{ audience, scope, good, bad string }{
		"instance in the scope":         {"", plane, plane, base},
		"instance among other scopes":   {"", "openid  " + plane + " " + plane + " x", plane, base},
		"no instance in the scope":      {"", "openid urn:vendor:messaging:acme", base, plane},
		"the audience before the scope": {base, plane, base, plane},
		"an address in the scope":       {"", "https://elsewhere.example.com", base, plane},
	} {
		t.Run(name, func(t *testing.T) {
			body := formBody(map[string]string{
				"grant_type": "client_credentials", "scope": tc.scope,
				"audience": tc.audience,
			})
			w := f.post("application/x-www-form-urlencoded", body,
				basic(f.credentials.ClientID, f.credentials.ClientSecret.Reveal()))
			f.token(t, w, tc.good)
			if _, err := f.Verifier.Authenticate(context.Background(), decode(t, w).AccessToken, tc.bad); err == nil {
				t.Errorf("token was accepted for audience %s too", tc.bad)
			}
		})
	}
	t.Run("system administrator anywhere", func(t *testing.T) {
		w := f.post("application/json", jsonBody(map[string]string{
			"grant_type": "client_credentials", "client_id": systemCredentials.ClientID,
			"client_secret": systemCredentials.ClientSecret.Reveal(), "audience": plane,
		}))
		if p := f.token(t, w, plane); !p.System || p.Instance != "prod" {
			t.Errorf("got principal %+v, want a system administrator for instance prod", p)
		}
	})
}

func TestIssuedTokensAreAudited(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.post("application/json", jsonBody(f.fields(plane)),
		func(r *http.Request) { r.Header.Set("User-Agent", "test/1") })
	if len(f.records) != 1 {
		t.Fatalf("got audit records %+v, want one", f.records)
	}
	r := f.records[0]
	if r.Principal != "ci@acme.127.0.0.1:8080" || r.Organization != "acme" || r.Decision != audit.Allowed ||
		r.Verb != "create" ||
		r.Resource != "tokens" || r.Scope != "audience/"+plane || r.UserAgent != "test/1" || r.RequestID == "" ||
		r.Source == "" {
		t.Errorf("got audit record %+v, want an allowed create of tokens for audience %s by ci@acme", r, plane)
	}
	if !strings.Contains(f.log.String(), `"principal":"ci@acme.127.0.0.1:8080"`) {
		t.Errorf("log has no principal: %s", f.log.String())
	}
}

func TestRefusedAudiencesAreAudited(t *testing.T) {
	t.Parallel()
	for audience, want := range map[string]string{
		"https://elsewhere.example.org":      "audience/https://elsewhere.example.org",
		"urn:vendor:messaging:acme:nowhere":  "audience/urn:vendor:messaging:acme:nowhere",
		"misplaced-secret":                   "",
		"https://u:misplaced@example.org":    "",
		"https://example.org?misplaced=true": "",
	} {
		f := newFixture(t)
		f.post("application/json", jsonBody(f.fields(audience)))
		if len(f.records) != 1 || f.records[0].Decision != audit.Denied || f.records[0].Scope != want {
			t.Errorf("%s: got audit records %+v, want one denial with scope %q", audience, f.records, want)
		}
	}
}

func FuzzTokenRequest(f *testing.F) {
	fx := newFixture(f, func(o *tokenapi.Options) {
		o.Limits = tokenapi.Limits{
			Client: tokenapi.Rate{PerSecond: -1}, Address: tokenapi.Rate{PerSecond: -1},
			Failures: tokenapi.Rate{PerSecond: -1},
		}
		o.Auditor = nil
	})
	f.Add(jsonBody(fx.fields(base)), "")
	f.Add(formBody(fx.fields(plane)), "Basic eDp5")
	f.Add(`{"grant_type":"client_credentials","x":[[[[[[`, "Bearer x")
	f.Add(`{"grant_type":"client_credentials","client_id":"\ud800","client_secret":"x"}`, "basic")
	f.Add("grant_type=client_credentials;client_id=x", "")
	secret := fx.credentials.ClientSecret.Reveal()
	f.Fuzz(func(t *testing.T, body, authorization string) {
		r := httptest.NewRequest(http.MethodPost, "/oauth/token", strings.NewReader(body))
		r.Header["Authorization"] = []string{authorization}
		w := httptest.NewRecorder()
		fx.handler.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("got status %d: %s, want less than 500", w.Code, w.Body)
		}
		got := decode(t, w)
		knows := strings.Contains(body+authorization, secret) || authorization != "" || strings.ContainsAny(body, `%\`)
		if w.Code == 200 && !knows {
			t.Fatalf("got a token for %q, which has no secret", body)
		}
		if w.Code != 200 && (got.Error == "" || got.AccessToken != "") {
			t.Fatalf("got response %+v, want an error without a token", got)
		}
		fx.log.Reset()
	})
}
