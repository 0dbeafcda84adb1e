package attack

import (
	"io"
	"net/http"
	"testing"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// TestAttackExistence calls every surface of several clusters with missing or invalid
// credentials, by path and by host. Clusters that exist and clusters that do not exist
// must return the same response.
func TestAttackExistence(t *testing.T) {
	t.Parallel()
	server := start(t, testserver.Options{})
	clusters := []struct{ path, host string }{
		{"/clusters/default/default", ""},
		{"/clusters/default/none", ""},
		{"/clusters/nobody/none", ""},
		{"", "default.default.freshet.localhost"},
		{"", "none.default.freshet.localhost"},
		{"", "none.nobody.freshet.localhost"},
	}
	calls := []struct{ method, path string }{
		{http.MethodPost, "/admin/rest/topics/v1/public/default/orders/message"},
		{http.MethodGet, "/admin/v2/tenants"},
		{http.MethodGet, "/rest-stream/admin/v1/groups"},
		{http.MethodGet, "/subjects"},
		{http.MethodGet, "/stream/subjects"},
	}
	attempts, revealed := 0, 0
	for _, credentials := range []string{"", "Bearer x.y.z", "Basic eDp5", "Basic ?", "Digest x"} {
		for _, call := range calls {
			want := ""
			for _, c := range clusters {
				attempts++
				got := visibleResponse(t, server, call.method, c.path+call.path, c.host, credentials)
				if want == "" {
					want = got
				}
				if got != want {
					revealed++
					t.Errorf("%s %s at %q with %q: got %s, want %s, the response for the existing cluster", call.method,
						c.path+call.path, c.host, credentials, got, want)
				}
			}
		}
	}
	tally.Attack(t, "find out without credentials which clusters exist", attempts, revealed)
}

// visibleResponse makes a call and returns the parts of the response that must not differ.
func visibleResponse(t *testing.T, server *testserver.Server, method, path, host, credentials string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		request.Host = host
	}
	if credentials != "" {
		request.Header.Set("Authorization", credentials)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status + " " + response.Header.Get("WWW-Authenticate") + " " + string(text)
}
