package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/ops/quota"
	"freshet/internal/surfaces/pipeline"
)

func TestToken(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]struct {
		token string
		err   error
	}{
		"":                     {"", identity.ErrNoToken},
		"Bearer":               {"", identity.ErrNoToken},
		"Bearer abc":           {"abc", nil},
		"bEARER  abc ":         {"abc", nil},
		"Basic dTpwYXNz":       {"pass", nil},
		"Basic OnRva2VuOmFiYw": {"", pipeline.ErrBasicEncoding},
		"basic dTp0b2tlbjpwdw": {"", pipeline.ErrBasicEncoding},
		"Basic OnRva2VuOmE=":   {"a", nil},
		"Basic dTo=":           {"", identity.ErrNoToken},
		"Basic dQ==":           {"", identity.ErrNoToken},
		"Basic !":              {"", pipeline.ErrBasicEncoding},
		"Digest abc":           {"", pipeline.ErrScheme},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		if token, err := pipeline.Token(r); token != want.token || !errors.Is(err, want.err) {
			t.Errorf("header %q: got %q, %v, want %q, %v", header, token, err, want.token, want.err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]int{
		-time.Second: 1, 0: 1, time.Millisecond: 1, time.Second: 1, 1001 * time.Millisecond: 2, 90 * time.Second: 90,
	} {
		if got := pipeline.RetrySeconds(delay); got != want {
			t.Errorf("delay %v: got %d seconds, want %d", delay, got, want)
		}
	}
	throttled := fmt.Errorf("call: %w", &quota.Throttled{After: 2500 * time.Millisecond})
	if got := pipeline.RetryAfter(throttled); got != "3" {
		t.Errorf("throttled for 2.5s: got %q, want 3", got)
	}
	if got := pipeline.RetryAfter(web.ErrBusy); got != "1" {
		t.Errorf("busy: got %q, want 1", got)
	}
}

func TestFindRoute(t *testing.T) {
	t.Parallel()
	router := web.NewRouter([]web.Route[string]{
		{Method: http.MethodGet, Pattern: "/a", Value: "read a"},
		{Method: http.MethodGet, Pattern: "/b", Value: "read b"},
		{Method: http.MethodPost, Pattern: "/b", Value: "write b"},
	}, nil)
	for request, want := range map[[2]string]struct {
		value, allow string
		err          error
	}{
		{"GET", "/a"}:    {"read a", "", nil},
		{"HEAD", "/a"}:   {"read a", "", nil},
		{"POST", "/a"}:   {"", "GET, HEAD", pipeline.ErrMethod},
		{"DELETE", "/b"}: {"", "GET, POST", pipeline.ErrMethod},
		{"GET", "/c"}:    {"", "", pipeline.ErrNoRoute},
	} {
		c := &pipeline.Call{
			R: httptest.NewRequest(request[0], request[1], http.NoBody), Surface: &pipeline.Surface{Name: "s"},
		}
		var path web.Path
		route, err := pipeline.FindRoute(c, router, &path)
		if !errors.Is(err, want.err) || err == nil && route.Value != want.value || c.Allow != want.allow {
			t.Errorf("%v: got %+v, %v, allowed %q, want %+v", request, route, err, c.Allow, want)
		}
	}
}

func TestStatusErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err                     error
		status                  int
		reason, message, header string
	}{
		"denied":  {errs.New(errs.Denied, "no"), 403, "Forbidden", "no", ""},
		"unknown": {errors.New("secret"), 500, "InternalError", "internal error, request id ", ""},
		"method":  {pipeline.ErrMethod, 405, "MethodNotAllowed", pipeline.ErrMethod.Error(), "Allow: PUT"},
		"gone":    {context.Canceled, 503, "ServiceUnavailable", "context canceled", "Retry-After: 1"},
		"no token": {
			identity.ErrNoToken, 401, "Unauthorized", identity.ErrNoToken.Error(), `Www-Authenticate: Bearer realm="r"`,
		},
		"malformed": {&web.Refusal{Status: 400, Text: "bad"}, 400, "BadRequest", "bad", ""},
		"throttled": {
			fmt.Errorf("slow: %w", quota.ErrThrottled), 429, "TooManyRequests",
			"slow: " + quota.ErrThrottled.Error(), "Retry-After: 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, w := pipeline.StatusErrors("r"), httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			table.Write(&pipeline.Call{W: w, R: r, Allow: "PUT"}, tc.err, table.Status(tc.err))
			var body struct{ Kind, APIVersion, Status, Message, Reason string }
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if w.Code != tc.status || body.Kind != "Status" || body.APIVersion != "v1" || body.Status != "Failure" ||
				body.Reason != tc.reason || body.Message != tc.message {
				t.Errorf("got %d %+v, want %d %s %s", w.Code, body, tc.status, tc.reason, tc.message)
			}
			for _, header := range []string{"Allow", "Retry-After", "Www-Authenticate"} {
				if value := w.Header().Get(header); value != "" && header+": "+value != tc.header {
					t.Errorf("got header %s: %s, want %q", header, value, tc.header)
				}
			}
		})
	}
	for kind := range errs.KindCount {
		if status := pipeline.StatusErrors("r").Status(errs.New(kind, "x")); status < 400 {
			t.Errorf("kind %v: got status %d, want an error", kind, status)
		}
	}
}
