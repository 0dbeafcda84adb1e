package web_test

import (
	"net/url"
	"testing"

	"freshet/internal/base/web"
)

// testRouter returns a router with routes that overlap.
func testRouter() *web.Router[string] {
	var routes []web.Route[string]
	for _, r := range [][2]string{
		{"GET", "/subjects"},
		{"GET", "/subjects/{subject}"},
		{"POST", "/subjects/{subject}"},
		{"GET", "/subjects/{subject}/versions/{version}"},
		{"GET", "/{domain}/{tenant}/{namespace}/partitioned"},
		{"PUT", "/{domain}/{tenant}/{namespace}/{topic}"},
		{"GET", "/{domain}/{tenant}/{namespace}/{topic}/stats"},
		{"GET", "/tenants/{tenant}/all/{rest}"},
		{"GET", "/{any}/x"},
		{"", "/oauth/..."},
		{"POST", "/oauth/token"},
		{"", "//oauth/..."},
		{"GET", "/"},
	} {
		routes = append(routes, web.Route[string]{Method: r[0], Pattern: r[1], Value: r[0] + " " + r[1]})
	}
	return web.NewRouter(routes, map[string][]string{"domain": {"persistent", "non-persistent"}})
}

func TestRouterFindsTheMostSpecificRoute(t *testing.T) {
	t.Parallel()
	router := testRouter()
	for request, want := range map[string]string{
		"GET /":                                "GET /",
		"GET /subjects":                        "GET /subjects",
		"GET /subjects/":                       "GET /subjects",
		"GET /subjects//":                      "GET /subjects/{subject}",
		"PUT /subjects":                        "",
		"POST /subjects/a":                     "POST /subjects/{subject}",
		"GET /subjects/a%2Fb":                  "GET /subjects/{subject}",
		"GET /subjects/x":                      "GET /subjects/{subject}",
		"GET /other/x":                         "GET /{any}/x",
		"GET /subjects/a/versions":             "",
		"GET /subjects/a/versions/1":           "GET /subjects/{subject}/versions/{version}",
		"GET /persistent/a/b/partitioned":      "GET /{domain}/{tenant}/{namespace}/partitioned",
		"PUT /persistent/a/b/partitioned":      "PUT /{domain}/{tenant}/{namespace}/{topic}",
		"PUT /elsewhere/a/b/t":                 "",
		"GET /non-persistent/a/b/t/stats":      "GET /{domain}/{tenant}/{namespace}/{topic}/stats",
		"GET /oauth":                           " /oauth/...",
		"GET /oauth/token":                     " /oauth/...",
		"POST /oauth/token":                    "POST /oauth/token",
		"POST /oauth/token/more":               " /oauth/...",
		"GET //oauth/token":                    " //oauth/...",
		"GET /oauthx":                          "",
		"GET /oauth/1/2/3/4/5/6/7/8/9/a/b/c/d": " /oauth/...",
		"GET /1/2/3/4/5/6/7/8/9/a/b/c/d/e/f/g": "",
	} {
		method, path, ok := cutRequest(request)
		if !ok {
			t.Fatalf("%q is not a method and a path", request)
		}
		got := ""
		if route := router.Find(method, path); route != nil {
			got = route.Value
		}
		if got != want {
			t.Errorf("%s: got route %q, want %q", request, got, want)
		}
	}
}

// cutRequest parses a method and a path.
func cutRequest(request string) (method string, path *web.Path, ok bool) {
	for i := range len(request) {
		if request[i] == ' ' {
			u, err := url.ParseRequestURI("http://h" + request[i+1:])
			if err != nil {
				return "", nil, false
			}
			path = &web.Path{}
			path.Parse(u)
			return request[:i], path, true
		}
	}
	return "", nil, false
}

func TestRouterNamesParameters(t *testing.T) {
	t.Parallel()
	method, path, _ := cutRequest("GET /persistent/a%2Fb/n%20s/t/stats")
	route := testRouter().Find(method, path)
	if route == nil {
		t.Fatal("got no route, want one")
	}
	for name, want := range map[string]string{
		"domain": "persistent", "tenant": "a/b", "namespace": "n s", "topic": "t",
		"other": "",
	} {
		if got := route.Param(path, name); got != want {
			t.Errorf("parameter %s: got %q, want %q", name, got, want)
		}
	}
}

func TestRouterListsAllowedMethods(t *testing.T) {
	t.Parallel()
	router := testRouter()
	for request, want := range map[string]string{
		"PATCH /subjects/a":                 "GET, POST",
		"PATCH /persistent/a/b/partitioned": "GET, PUT",
		"PATCH /nothing/here":               "",
	} {
		_, path, _ := cutRequest(request)
		if got := router.Allowed(path); got != want {
			t.Errorf("%s: got allowed methods %q, want %q", request, got, want)
		}
	}
}

func TestRouterRejectsDuplicateRoutes(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("NewRouter accepted two routes for the same method and path, want a panic")
		}
	}()
	web.NewRouter([]web.Route[int]{{Method: "GET", Pattern: "/a/{b}"}, {Method: "GET", Pattern: "/a/{c}"}}, nil)
}

func TestPathWithBrokenEncoding(t *testing.T) {
	t.Parallel()
	path := &web.Path{}
	path.Parse(&url.URL{Path: "/subjects/%zz", RawPath: "/subjects/%zz"})
	if route := testRouter().Find("GET", path); route != nil || path.Err() == nil {
		t.Errorf("got route %v, error %v, want no route and an error", route, path.Err())
	}
}

func TestRemovedSegment(t *testing.T) {
	t.Parallel()
	method, path, _ := cutRequest("GET /subjects/extra/a/versions/1")
	path.Remove(1)
	if route := testRouter().Find(method, path); route == nil || route.Param(path, "version") != "1" {
		t.Errorf("got route %v, want the one with version 1", route)
	}
}

func FuzzRouter(f *testing.F) {
	for _, path := range []string{
		"/", "//", "/subjects/a%2Fb", "/oauth/%", "/a/b/c/d/e/f/g/h/i/j/k/l/m",
		"subjects", "*", "",
	} {
		f.Add("GET", path)
	}
	router := testRouter()
	f.Fuzz(func(t *testing.T, method, raw string) {
		path := &web.Path{}
		path.Parse(&url.URL{Path: raw, RawPath: raw})
		if route := router.Find(method, path); route != nil && route.Method != "" && route.Method != method {
			t.Errorf("got route %s for method %s, want one for that method or for all", route.Value, method)
		}
		router.Allowed(path)
	})
}

func BenchmarkRouter(b *testing.B) {
	router := testRouter()
	u := &url.URL{Path: "/persistent/public/default/t/stats"}
	var path web.Path
	b.ReportAllocs()
	for b.Loop() {
		path.Parse(u)
		if router.Find("GET", &path) == nil {
			b.Fatal("got no route, want one")
		}
	}
}
