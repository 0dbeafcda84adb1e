package systemapi_test

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/prometheus/client_golang/prometheus"

	"freshet/api/openapi"
	"freshet/internal/base/errs"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/identity/identitytest"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/systemapi"
	"freshet/test/tally"
)

// recordingAuditor stores audit records.
type recordingAuditor struct{ records []audit.Record }

func (t *recordingAuditor) Record(r audit.Record) { t.records = append(t.records, r) }

type fixture struct {
	replaced    []string
	steppedDown int
	accepted    []systemapi.ShardID
	api         *systemapi.API
	trail       *recordingAuditor
	tokens      map[string]string
}

// Members implements systemapi.Ensemble.
func (*fixture) Members(context.Context) (*systemapi.Members, error) {
	return &systemapi.Members{
		Self: "a", Controller: "b",
		Members: []systemapi.Member{{Name: "a", Node: 1, Live: true}},
	}, nil
}

// Replace implements systemapi.Ensemble.
func (f *fixture) Replace(_ context.Context, name string) error {
	if name != "c" {
		return errs.New(errs.Conflict, "member is live")
	}
	f.replaced = append(f.replaced, name)
	return nil
}

// StepDown implements systemapi.Ensemble.
func (f *fixture) StepDown(_ context.Context, name string) (*systemapi.SteppedDown, error) {
	if name == "half" {
		return nil, errs.New(errs.Unavailable, "some streams have no other leader yet")
	}
	if name != "a" {
		return nil, errs.New(errs.NotFound, "no such member")
	}
	f.steppedDown++
	return &systemapi.SteppedDown{Etcd: true, Streams: 4}, nil
}

// Loss implements systemapi.Ensemble.
func (*fixture) Loss(_ context.Context, shard systemapi.ShardID, from string) (*systemapi.Loss, error) {
	if shard.Number != 3 {
		return nil, errs.New(errs.Precondition, "nothing is lost")
	}
	return &systemapi.Loss{
		Organization: shard.Organization, Cluster: shard.Cluster, Shard: shard.Number,
		From: cmp.Or(from, "b"), State: "m1",
	}, nil
}

// AcceptLoss implements systemapi.Ensemble.
func (f *fixture) AcceptLoss(ctx context.Context, shard systemapi.ShardID, from,
	state string,
) (*systemapi.Loss, error) {
	if state != "m1" {
		return nil, errs.New(errs.Conflict, "mark is outdated")
	}
	f.accepted = append(f.accepted, shard)
	return f.Loss(ctx, shard, from)
}

// Journals implements systemapi.Ensemble.
func (*fixture) Journals(_ context.Context, cluster systemapi.ClusterID, from string) (*systemapi.Journals, error) {
	return &systemapi.Journals{
		Organization: cluster.Organization, Cluster: cluster.Cluster,
		Journals: []systemapi.Journal{{
			Name: "schemas", Lost: "stream does not exist", From: cmp.Or(from, "b"), State: "m1",
			Copies: []systemapi.JournalCopy{{Member: "b", Position: 7}},
		}},
	}, nil
}

// AcceptJournalLoss implements systemapi.Ensemble.
func (f *fixture) AcceptJournalLoss(_ context.Context, cluster systemapi.ClusterID, journal, from,
	state string,
) (*systemapi.Journal, error) {
	if state != "m1" {
		return nil, errs.New(errs.Conflict, "mark is outdated")
	}
	return &systemapi.Journal{Name: journal, From: from, Copies: []systemapi.JournalCopy{}}, nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	world := identitytest.New(t)
	policy := access.NewPolicy()
	f := &fixture{trail: &recordingAuditor{}, tokens: map[string]string{"nobody": ""}}
	for name, edit := range map[string]func(*identity.Account){
		"root":    func(a *identity.Account) { a.System = true },
		"boss":    func(a *identity.Account) { a.Admin = true },
		"viewer":  func(*identity.Account) {},
		"without": func(*identity.Account) {},
		"other":   func(a *identity.Account) { a.Organization, a.Admin = "globex", true },
	} {
		account, _ := world.Account("acme", name, edit)
		f.tokens[name] = world.Token(account, identitytest.IssuerURL)
	}
	if err := policy.SetBinding(access.Binding{
		Organization: "acme", Name: "viewer", RoleKind: "ClusterRole", Role: "metrics-viewer",
		Subjects: []access.Subject{{Kind: access.SubjectServiceAccount, Name: "viewer"}},
	}); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	topics := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "topics", Help: "Topics."},
		[]string{"organization", "cluster"})
	topics.WithLabelValues("acme", "prod").Set(7)
	topics.WithLabelValues("globex", "secret-cluster").Set(9)
	server := prometheus.NewGauge(prometheus.GaugeOpts{Name: "of_the_server"})
	registry.MustRegister(topics, server)
	f.api = systemapi.New(systemapi.Options{
		Options:   pipeline.Options{Authenticator: world.Verifier, Authorizer: policy, Auditor: f.trail},
		Audiences: []string{identitytest.IssuerURL}, Metrics: registry,
		Configuration: configuration("domain: example\n"),
		Ensemble:      f,
	})
	return f
}

// configuration is a configuration as YAML.
type configuration string

// YAML implements systemapi.Configuration.
func (c configuration) YAML() ([]byte, error) { return []byte(c), nil }

func (f *fixture) get(ctx context.Context, user, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, method, "http://h"+path, http.NoBody)
	if token := f.tokens[user]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	f.api.ServeHTTP(w, r)
	return w
}

func TestAuthorization(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tc := range []struct {
		who, method, path string
		status            int
		has, not          string
	}{
		{"boss", "GET", "/system/v1alpha1/metrics", 200, `topics{cluster="prod",organization="acme"} 7`, "globex"},
		{"viewer", "GET", "/system/v1alpha1/metrics?organization=acme", 200, `cluster="prod"`, "of_the_server"},
		{"root", "GET", "/system/v1alpha1/metrics", 200, "of_the_server", ""},
		{"root", "GET", "/system/v1alpha1/metrics?organization=globex", 200, "secret-cluster", "acme"},
		{"root", "GET", "/system/v1alpha1/metrics?organization=none", 200, "", "topics"},
		{"without", "GET", "/system/v1alpha1/metrics", 403, "cloud.metrics.describe", "prod"},
		{"nobody", "GET", "/system/v1alpha1/metrics", 401, "Unauthorized", "prod"},
		{"boss", "GET", "/system/v1alpha1/metrics?organisation=acme", 400, "organization", "prod"},
		{"boss", "GET", "/system/v1alpha1/metrics?%zz", 400, "malformed", "prod"},
		{"root", "GET", "/system/v1alpha1/members", 200, `"controller":"b"`, ""},
		{"boss", "GET", "/system/v1alpha1/members", 403, "system administrators", "controller"},
		{"nobody", "GET", "/system/v1alpha1/members", 401, "", "controller"},
		{"root", "POST", "/system/v1alpha1/members/c/replace", 200, "{}", ""},
		{"root", "POST", "/system/v1alpha1/members/a/replace", 409, "member is live", ""},
		{"boss", "POST", "/system/v1alpha1/members/c/replace", 403, "system administrators", ""},
		{"root", "GET", "/system/v1alpha1/members/c/replace", 405, "Allow", ""},
		{"root", "POST", "/system/v1alpha1/members/a/step-down", 200, `{"etcd":true,"streams":4}`, ""},
		{"root", "POST", "/system/v1alpha1/members/x/step-down", 404, "no such member", ""},
		{"boss", "POST", "/system/v1alpha1/members/a/step-down", 403, "system administrators", "streams"},
		{"nobody", "POST", "/system/v1alpha1/members/a/step-down", 401, "", "streams"},
		{"root", "GET", "/system/v1alpha1/members/a/step-down", 405, "Allow", ""},
		{"root", "GET", "/system/v1alpha1/journals/acme/prod", 200, `"lost":"stream does not exist"`, ""},
		{"root", "GET", "/system/v1alpha1/journals/acme/prod?from=c", 200, `"from":"c"`, ""},
		{"root", "GET", "/system/v1alpha1/journals/acme/prod?other=c", 400, "malformed", ""},
		{"boss", "GET", "/system/v1alpha1/journals/acme/prod", 403, "system administrators", "m1"},
		{"boss", "POST", "/system/v1alpha1/journals/acme/prod", 403, "system administrators", "m1"},
		{"root", "POST", "/system/v1alpha1/journals/acme/prod", 400, "body must be", "m1"},
		{"root", "GET", "/system/v1alpha1/shards/acme/prod/3/loss", 200, `"from":"b"`, ""},
		{"root", "GET", "/system/v1alpha1/shards/acme/prod/3/loss?from=log", 200, `"from":"log"`, ""},
		{"root", "GET", "/system/v1alpha1/shards/acme/prod/3/loss?from=log&from=a", 400, "malformed", ""},
		{"root", "GET", "/system/v1alpha1/shards/acme/prod/x/loss", 400, "shard number", ""},
		{"root", "GET", "/system/v1alpha1/shards/acme/prod/2/loss", 412, "nothing is lost", ""},
		{"boss", "GET", "/system/v1alpha1/shards/acme/prod/3/loss", 403, "system administrators", "m1"},
		{"boss", "POST", "/system/v1alpha1/shards/acme/prod/3/loss", 403, "system administrators", "m1"},
		{"nobody", "POST", "/system/v1alpha1/shards/acme/prod/3/loss", 401, "", "m1"},
		{"root", "POST", "/system/v1alpha1/shards/acme/prod/3/loss", 400, "body must be", "m1"},
		{"boss", "POST", "/system/v1alpha1/metrics", 405, "the Allow header", "prod"},
		{"boss", "GET", "/system/v1alpha1", 404, "path does not exist", ""},
		{"root", "GET", "/system/v1alpha1/configuration", 200, "domain: example", ""},
		{"boss", "GET", "/system/v1alpha1/configuration", 403, "system administrators", "domain"},
		{"nobody", "GET", "/system/v1alpha1/configuration", 401, "", "domain"},
		{"nobody", "GET", "/system/v1alpha1/openapi.yaml", 200, "Freshet system", ""},
	} {
		w := f.get(t.Context(), tc.who, tc.method, tc.path)
		text := w.Body.String()
		if w.Code != tc.status || !strings.Contains(text, tc.has) || tc.not != "" && strings.Contains(text, tc.not) {
			t.Errorf("%s: %s %s: got %d %s, want %d with %q and without %q", tc.who, tc.method, tc.path, w.Code, text,
				tc.status, tc.has, tc.not)
		}
	}
}

func TestSteppingDownIsRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get(t.Context(), "root", http.MethodPost, "/system/v1alpha1/members/a/step-down")
	if got := f.trail.records; f.steppedDown != 1 || len(got) != 1 || got[0].Decision == "deny" ||
		got[0].Scope != "member/a" {
		t.Errorf("stepped down %d times with records %+v, want once with one record of member/a", f.steppedDown, got)
	}
	f.get(t.Context(), "boss", http.MethodPost, "/system/v1alpha1/members/a/step-down")
	if got := f.trail.records; f.steppedDown != 1 || len(got) != 2 || got[1].Decision != "deny" {
		t.Errorf("stepped down %d times with records %+v, want once and the record of a denial", f.steppedDown, got)
	}
	// A failed call may have had a partial effect, so it is recorded.
	f.get(t.Context(), "root", http.MethodPost, "/system/v1alpha1/members/half/step-down")
	f.get(t.Context(), "root", http.MethodPost, "/system/v1alpha1/members/x/step-down")
	if got := f.trail.records; len(got) != 3 || got[2].Decision == "deny" ||
		got[2].Status != http.StatusServiceUnavailable {
		t.Errorf("got records %+v, want a third one for the partial failure, and none for the unknown member", got)
	}
}

func TestAcceptingALossIsRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for body, want := range map[string]int{
		`{"from":"b","mark":"m1"}`: 200, `{"from":"b","mark":"m0"}`: 409, `{"from":"b"}`: 400,
		`{"mark":"m1"}`: 400, `[]`: 400,
		`{"from":"` + strings.Repeat("x", 5000) + `"}`: 413,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://h/system/v1alpha1/shards/acme/prod/3/loss", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+f.tokens["root"])
		f.api.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%.40s: got %d %s, want %d", body, w.Code, w.Body, want)
		}
	}
	if len(f.accepted) != 1 || f.accepted[0] != (systemapi.ShardID{Organization: "acme", Cluster: "prod", Number: 3}) {
		t.Errorf("accepted losses: got %+v, want one of acme/prod, shard 3", f.accepted)
	}
	if got := f.trail.records; len(got) != 1 || got[0].Surface != "system" || got[0].Decision == "deny" {
		t.Errorf("got records %+v, want one for the accepted loss", got)
	}
}

// TestAttackMetricsOfOthers: no query returns metrics of another organization.
func TestAttackMetricsOfOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	attempts, successes := 0, 0
	for _, user := range []string{"boss", "viewer", "without", "nobody"} {
		for _, query := range []string{
			"?organization=globex", "?organization=globex&organization=acme", "?organization=acme&organization=globex",
			"?organization=*", "?organization=",
			"?organization=acme%00globex", "?organization=GLOBEX", "?organization=acme%22%7D",
			"?Organization=globex", "",
		} {
			attempts++
			if w := f.get(t.Context(), user, http.MethodGet, "/system/v1alpha1/metrics"+
				query); strings.Contains(w.Body.String(), "secret-cluster") ||
				strings.Contains(w.Body.String(), "of_the_server") {
				successes++
				t.Errorf("%s: query %q returned %s", user, query, w.Body)
			}
		}
	}
	tally.Attack(t, "metrics of another organization", attempts, successes)
}

func TestDenialsAreRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.get(t.Context(), "without", http.MethodGet, "/system/v1alpha1/metrics")
	f.get(t.Context(), "boss", http.MethodGet, "/system/v1alpha1/configuration")
	if len(f.trail.records) != 2 || f.trail.records[0].Decision != "deny" || f.trail.records[1].Surface != "system" {
		t.Errorf("got records %+v, want two denials of the surface system", f.trail.records)
	}
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromData(openapi.Document("system"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/system/v1alpha1/metrics", "/system/v1alpha1/configuration"} {
		if document.Paths.Find(path) == nil {
			t.Errorf("OpenAPI document does not have %s", path)
		}
	}
}
