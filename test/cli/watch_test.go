package cli

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestWatchPrintsTheListOnce ends the connection of 'get -w' and makes it start again from the
// beginning. The command must print every version of an object once.
func TestWatchPrintsTheListOnce(t *testing.T) {
	t.Parallel()
	p := newWorkFolder(t)
	p.do(`freshet org create watched
		for name in zed ann bob; do freshet sa create $name -n watched; done`)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var watches atomic.Int32
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		FlushInterval: -1,
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			switch watches.Add(1) {
			case 1:
				r.URL.RawQuery += "&timeoutSeconds=1"
			case 2: // the server no longer has the changes since the first watch
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusGone)
				_, _ = w.Write([]byte(`{"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}`))
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	for _, format := range []string{"table", "name"} {
		watches.Store(0)
		out, err := bash(t.Context(), p.dir, server, `timeout -s INT 5 freshet get sa -n watched -w -o `+format+
			` --server `+front.URL+` --token-file freshet-data/admin.token || true`)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, name := range []string{"ann", "bob", "zed"} {
			if n := strings.Count(out, name); n != 1 {
				t.Errorf("-o %s: %s is printed %d times, want once:\n%s", format, name, n, out)
			}
		}
		if watches.Load() < 3 {
			t.Errorf("-o %s: the command watched %d times, want several", format, watches.Load())
		}
	}
}
