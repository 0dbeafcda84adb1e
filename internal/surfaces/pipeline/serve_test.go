package pipeline_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/surfaces/pipeline"
	"freshet/internal/surfaces/pipeline/pipelinetest"
)

// script is a surface whose steps are recorded. fail is the step that fails.
type script struct {
	pipeline.Call
	fail    string
	forward bool
	late    bool // only the owner can authenticate the caller
	steps   []string
}

var errScript = errs.New(errs.Denied, "step failed")

func (s *script) step(name string) error {
	s.steps = append(s.steps, name)
	if s.fail == name {
		return errScript
	}
	return nil
}

func (s *script) Route() error   { return s.step("route") }
func (s *script) Resolve() error { return s.step("resolve") }
func (s *script) Authenticate() error {
	if !s.late {
		s.Principal = &identity.Principal{Name: "p", Organization: "acme"}
	}
	return s.step("authenticate")
}
func (s *script) Forward() (bool, error)     { return s.forward, s.step("forward") }
func (s *script) Authorize() error           { return s.step("authorize") }
func (s *script) Handle() error              { return s.step("handle") }
func (s *script) Audit(_ error, _ int)       { _ = s.step("audit") }
func (s *script) Status(error) int           { return http.StatusForbidden }
func (s *script) AuthenticateAtOwner() error { return s.step("authenticate at owner") }

func (s *script) Write(*pipeline.Call, error, int) { _ = s.step("error") }

func (s *script) serve(edits ...func(*script)) {
	s.W, s.R = httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	s.Surface = &pipeline.Surface{Name: "script", Errors: s}
	for _, edit := range edits {
		edit(s)
	}
	pipeline.Serve(s)
}

func (s *script) want(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(s.steps, " "); got != want {
		t.Errorf("got steps %q, want %q", got, want)
	}
}

func TestServeRunsTheStepsInOrder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		script script
		want   string
	}{
		{"success", script{}, "route resolve authenticate forward authorize handle audit"},
		{"no route", script{fail: "route"}, "route audit error"},
		{"no cluster", script{fail: "resolve"}, "route resolve audit error"},
		{"no caller", script{fail: "authenticate"}, "route resolve authenticate audit error"},
		{"forwarded", script{forward: true}, "route resolve authenticate forward"},
		{"not forwarded", script{fail: "forward"}, "route resolve authenticate forward audit error"},
		{"denied", script{fail: "authorize"}, "route resolve authenticate forward authorize audit error"},
		{"failed", script{fail: "handle"}, "route resolve authenticate forward authorize handle audit error"},
		{
			"credentials for the owner, who rejects them",
			script{late: true, fail: "authenticate at owner"},
			"route resolve authenticate forward authenticate at owner audit error",
		},
		{
			"credentials for the owner, who finds no caller",
			script{late: true},
			"route resolve authenticate forward authenticate at owner audit error",
		},
		{
			"credentials for the owner, forwarded",
			script{late: true, forward: true},
			"route resolve authenticate forward",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.script.serve()
			tc.script.want(t, tc.want)
		})
	}
}

func TestServePublicOperations(t *testing.T) {
	t.Parallel()
	s := script{}
	s.serve(func(s *script) { s.Public, s.Surface.Limiter = true, pipelinetest.FullLimiter() })
	s.want(t, "route handle audit")
}

func TestServeRejectsMalformedRequestsFirst(t *testing.T) {
	t.Parallel()
	s := &script{}
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(func(s *script) { s.W, s.R = w, r })
	})
	refusing := web.Refuse(serve, &web.Refusal{Status: http.StatusBadRequest, Text: "malformed"})
	web.Middleware(refusing, slog.New(slog.DiscardHandler), nil).ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	s.want(t, "audit error")
}

// TestServeMetersBeforeItAuthorizes: a throttled caller is not authorized.
func TestServeMetersBeforeItAuthorizes(t *testing.T) {
	t.Parallel()
	s := script{}
	s.serve(func(s *script) { s.Quota = pipelinetest.ThrottledCluster() })
	s.want(t, "route resolve authenticate forward audit error")
}

// TestServeLimitsAfterItAuthorizes: a denied caller takes no slot, an allowed one needs one.
func TestServeLimitsAfterItAuthorizes(t *testing.T) {
	t.Parallel()
	full := web.NewLimiter(1, 1)
	if err := full.Enter(web.Caller{}); err != nil {
		t.Fatal(err)
	}
	limited := func(s *script) { s.Surface.Limiter = full }
	s := script{}
	s.serve(limited)
	s.want(t, "route resolve authenticate forward authorize audit error")
	s = script{}
	s.serve(limited, func(s *script) { s.Unlimited = true })
	s.want(t, "route resolve authenticate forward authorize handle audit")
	full.Leave(web.Caller{})
	for range 3 { // every call returns its slot
		s = script{}
		s.serve(limited)
		s.want(t, "route resolve authenticate forward authorize handle audit")
	}
}

// TestServeWritesNoErrorIntoAStartedResponse: the handler has started the response.
func TestServeWritesNoErrorIntoAStartedResponse(t *testing.T) {
	t.Parallel()
	s := script{fail: "handle"}
	s.serve(func(s *script) { s.Started = true })
	s.want(t, "route resolve authenticate forward authorize handle audit")
}
