package messageapi_test

import (
	"net/http"
	"testing"

	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
	"freshet/internal/surfaces/messageapi"
	"freshet/internal/surfaces/pipeline/pipelinetest"
)

// TestOrderOfSteps: both surfaces run the steps in the order of pipeline.Serve. So an
// unauthenticated caller is not forwarded, a throttled one is not authorized, and a denied
// one takes no slot of the limiter.
func TestOrderOfSteps(t *testing.T) {
	t.Parallel()
	const path, admin = root + "public/default/", "/admin/v2/persistent/public/default/"
	full := func(o *messageapi.Options) { o.Limiter = pipelinetest.FullLimiter() }
	throttled := func(o *messageapi.Options) {
		o.Resolver = pipelinetest.Resolver(&pipelinetest.Trace{}, o.Resolver,
			func(c *brokerhttp.Cluster) { c.Quota = pipelinetest.ThrottledCluster() })
	}
	none := func(*messageapi.Options) {}
	for _, tc := range []struct {
		name, caller, method, path string
		edit                       func(*messageapi.Options)
		status                     int
		steps                      string
	}{
		{"message", "boss", "POST", path + "here/message", none, 404, "resolve authenticate authorize"},
		{"message, no slot", "boss", "POST", path + "here/message", full, 503, "resolve authenticate authorize"},
		{"message, denied", "nobody", "POST", path + "here/message", full, 401, "resolve authenticate authorize audit"},
		{"message, throttled", "boss", "POST", path + "here/message", throttled, 429, "resolve authenticate"},
		{"message, throttled, denied", "nobody", "POST", path + "here/message", throttled, 429, "resolve authenticate"},
		{"message, forwarded", "nobody", "POST", path + "there/message", full, 202, "resolve authenticate"},
		{"message, unauthenticated", "?", "POST", path + "there/message", full, 401, "resolve authenticate audit"},
		{"change", "boss", "PUT", admin + "here", none, 204, "resolve authenticate authorize audit"},
		{"change, no slot", "boss", "PUT", admin + "here", full, 503, "resolve authenticate authorize audit"},
		{"change, denied", "nobody", "PUT", admin + "here", full, 403, "resolve authenticate authorize audit"},
		{"change, throttled", "boss", "PUT", admin + "here", throttled, 429, "resolve authenticate audit"},
		{"change, forwarded", "nobody", "PUT", admin + "there", full, 202, "resolve authenticate"},
		{"change, unauthenticated", "?", "PUT", admin + "there", full, 401, "resolve authenticate audit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			trace, owner := &pipelinetest.Trace{}, &otherMember{}
			w := newHarness(t, messaging.Options{}, owner.edit, tc.edit, func(o *messageapi.Options) {
				o.Options, o.Resolver = trace.Options(o.Options), pipelinetest.Resolver(trace, o.Resolver, nil)
			})
			w.ValidateResponses = false
			token := map[string]string{"boss": w.Token, "nobody": w.Account("nobody"), "?": "?"}[tc.caller]
			if got := w.as(token).Call(tc.method, tc.path, ""); got.Status != tc.status {
				t.Errorf("got status %d, want %d; body %s", got.Status, tc.status, got.Body)
			}
			if got := trace.Take(); got != tc.steps {
				t.Errorf("got steps %q, want %q", got, tc.steps)
			}
			if forwarded := len(owner.requests) == 1; forwarded != (tc.status == http.StatusAccepted) {
				t.Errorf("the owner got %q", owner.requests)
			}
		})
	}
}
