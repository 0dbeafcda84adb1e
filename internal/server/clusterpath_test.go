package server

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"freshet/internal/base/web"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/provision"
	"freshet/internal/surfaces/clusterpath"
)

// TestClusterPath checks which cluster a path selects, and which path its surfaces get.
func TestClusterPath(t *testing.T) {
	t.Parallel()
	plane, err := dataplane.Open(dataplane.Options{
		Dir: t.TempDir(), Domain: "freshet.localhost", DefaultOrganization: "default", DefaultName: "default",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, at := range [][2]string{{"default", "default"}, {"acme", "prod"}, {"other", "prod"}} {
		spec := provision.Spec{
			UID: at[0] + at[1], Organization: at[0], Name: at[1],
			Host: at[1] + "." + at[0] + ".freshet.localhost", Engine: "pebble",
		}
		if err := plane.Provision(t.Context(), spec, func(provision.Part) {}); err != nil {
			t.Fatal(err)
		}
	}
	// echo responds with its name, the cluster of the request, and the path.
	echo := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cluster := "none"
			if c, err := clusterpath.Find(plane, r); err == nil {
				cluster = c.Organization + "/" + c.Name
			}
			w.Header().Set("Got", name+" "+cluster+" "+r.URL.EscapedPath()+"?"+r.URL.RawQuery)
		})
	}
	surfaces := []web.Route[mount]{
		mountAt("/admin/rest/...", "messages", echo("messages")),
		mountAt("/stream/...", "registry", clusterpath.StripSegments(1, echo("stream"))),
		mountAt("/...", "registry", echo("root")),
	}
	outer := newRouter(append(surfaces,
		mountAt(clusterPattern, "clusters",
			clusterpath.Handler{Surfaces: newRouter(slices.Clone(surfaces), web.CORS{})}),
		mountAt("/apis/...", "resources", echo("resources")), mountAt("/oauth/...", "token", echo("token"))),
		web.CORS{})
	tests := map[string]struct{ host, path, want string }{
		"messages": {"127.0.0.1", "/clusters/acme/prod/admin/rest/x", "messages acme/prod /admin/rest/x?"},
		"another organization's": {
			"127.0.0.1", "/clusters/other/prod/admin/rest/x",
			"messages other/prod /admin/rest/x?",
		},
		"the registry, with a query": {
			"127.0.0.1", "/clusters/acme/prod/subjects?deleted=true",
			"root acme/prod /subjects?deleted=true",
		},
		"the registry under stream": {
			"127.0.0.1", "/clusters/acme/prod/stream/subjects",
			"stream acme/prod /subjects?",
		},
		"an escaped slash in a subject": {
			"127.0.0.1", "/clusters/acme/prod/stream/subjects/a%2Fb%2Fc",
			"stream acme/prod /subjects/a%2Fb%2Fc?",
		},
		"a slash at the end":      {"127.0.0.1", "/clusters/acme/prod/subjects/", "root acme/prod /subjects/?"},
		"nothing behind the name": {"127.0.0.1", "/clusters/acme/prod", "root acme/prod /?"},
		"an escaped word": {
			"127.0.0.1", "/%63lusters/%61cme/prod/%73tream/subjects",
			"stream acme/prod /subjects?",
		},
		"at another cluster's host": {
			"prod.other.freshet.localhost", "/clusters/acme/prod/subjects",
			"root acme/prod /subjects?",
		},
		"the default cluster by path": {
			"127.0.0.1", "/clusters/default/default/subjects",
			"root default/default /subjects?",
		},
		"an unknown cluster": {"127.0.0.1", "/clusters/acme/gone/subjects", "root none /subjects?"},
		"an unknown cluster, messages": {
			"127.0.0.1", "/clusters/acme/gone/admin/rest/x",
			"messages none /admin/rest/x?",
		},
		"an escaped slash in the name":  {"127.0.0.1", "/clusters/acme%2Fprod/subjects", "root none /?"},
		"another slash before the name": {"127.0.0.1", "/clusters//acme/prod/subjects", "root none /prod/subjects?"},
		"another slash behind the name": {"127.0.0.1", "/clusters/acme/prod//subjects", "root acme/prod //subjects?"},
		"another slash at the start": {
			"127.0.0.1", "//clusters/acme/prod/subjects",
			"root default/default //clusters/acme/prod/subjects?",
		},
		"dots do not climb": {
			"127.0.0.1", "/clusters/acme/prod/../../other/prod/subjects",
			"root acme/prod /../../other/prod/subjects?",
		},
		"escaped dots do not climb": {
			"127.0.0.1", "/clusters/acme/%2e%2e/other/subjects",
			"root none /other/subjects?",
		},
		"the prefix twice": {
			"127.0.0.1", "/clusters/acme/prod/clusters/other/prod/subjects",
			"root acme/prod /clusters/other/prod/subjects?",
		},
		"no resource API under a cluster": {"127.0.0.1", "/clusters/acme/prod/apis/x", "root acme/prod /apis/x?"},
		"no token API under a cluster": {
			"127.0.0.1", "/clusters/acme/prod/oauth/token",
			"root acme/prod /oauth/token?",
		},
		"without a cluster":                 {"127.0.0.1", "/clusters/acme", "root default/default /clusters/acme?"},
		"capitals are another organization": {"127.0.0.1", "/clusters/Acme/prod/subjects", "root none /subjects?"},
		"by host": {
			"prod.acme.freshet.localhost", "/stream/subjects",
			"stream acme/prod /subjects?",
		},
		"by host, an escaped word": {
			"prod.acme.freshet.localhost", "/%73tream/subjects",
			"stream acme/prod /subjects?",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://h"+tc.path, http.NoBody)
			r.Host = tc.host
			outer.ServeHTTP(rec, r)
			if got := rec.Header().Get("Got"); got != tc.want {
				t.Errorf("%s%s: got %q, want %q", tc.host, tc.path, got, tc.want)
			}
		})
	}
}
