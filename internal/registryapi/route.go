package registryapi

import (
	"net/http"
	"net/url"
	"strings"
)

// route is one endpoint.
type route struct {
	method  string
	pattern string // segments; {} stands for anything
	serve   func(*call) error
	quick   bool // no deadline of its own: answered from memory, or as long as the file is
	lines   bool // the file of an export goes in or out

	segments []string
}

// maxSegments is the length of the longest path.
const maxSegments = 5

// routes are all endpoints there are.
var routes = prepareRoutes([]route{
	{method: http.MethodGet, pattern: "/schemas/types", serve: (*call).getTypes, quick: true},
	{method: http.MethodGet, pattern: "/schemas/ids/{id}", serve: (*call).getSchema, quick: true},
	{method: http.MethodGet, pattern: "/schemas/ids/{id}/schema", serve: (*call).getSchemaText, quick: true},
	{method: http.MethodGet, pattern: "/schemas/ids/{id}/versions", serve: (*call).getSchemaVersions},
	{method: http.MethodGet, pattern: "/schemas/ids/{id}/subjects", serve: (*call).getSchemaSubjects},

	{method: http.MethodGet, pattern: "/subjects", serve: (*call).getSubjects},
	{method: http.MethodPost, pattern: "/subjects/{subject}", serve: (*call).lookUp},
	{method: http.MethodDelete, pattern: "/subjects/{subject}", serve: (*call).deleteSubject},
	{method: http.MethodGet, pattern: "/subjects/{subject}/versions", serve: (*call).getVersions},
	{method: http.MethodPost, pattern: "/subjects/{subject}/versions", serve: (*call).register},
	{method: http.MethodGet, pattern: "/subjects/{subject}/versions/{version}", serve: (*call).getVersion},
	{method: http.MethodDelete, pattern: "/subjects/{subject}/versions/{version}", serve: (*call).deleteVersion},
	{method: http.MethodGet, pattern: "/subjects/{subject}/versions/{version}/schema", serve: (*call).getVersionText},
	{method: http.MethodGet, pattern: "/subjects/{subject}/versions/{version}/referencedby", serve: (*call).getReferencedBy},

	{method: http.MethodPost, pattern: "/compatibility/subjects/{subject}/versions", serve: (*call).checkSubject},
	{method: http.MethodPost, pattern: "/compatibility/subjects/{subject}/versions/{version}", serve: (*call).checkVersion},

	{method: http.MethodGet, pattern: "/config", serve: (*call).getGlobalConfig, quick: true},
	{method: http.MethodGet, pattern: "/config/{subject}", serve: (*call).getConfig},
	{method: http.MethodPut, pattern: "/config/{subject}", serve: (*call).putConfig},
	{method: http.MethodGet, pattern: "/mode", serve: (*call).getMode},
	{method: http.MethodPut, pattern: "/mode", serve: (*call).putMode},

	{method: http.MethodPost, pattern: "/registry/v1alpha1/diff", serve: (*call).diff},
	{method: http.MethodGet, pattern: "/registry/v1alpha1/export", serve: (*call).export, quick: true, lines: true},
	{method: http.MethodPost, pattern: "/registry/v1alpha1/import", serve: (*call).importFile, quick: true, lines: true},
})

// prepareRoutes sorts routes by their number of segments.
func prepareRoutes(all []route) (byLength [maxSegments + 1][]route) {
	for _, r := range all {
		r.segments = strings.Split(r.pattern[1:], "/")
		for i, s := range r.segments {
			if s[0] == '{' {
				r.segments[i] = ""
			}
		}
		byLength[len(r.segments)] = append(byLength[len(r.segments)], r)
	}
	return byLength
}

// route finds the endpoint and fills in the segments of the path. Each segment
// is decoded by itself, so that a subject may contain an encoded slash; one
// slash at the end means nothing.
func (c *call) route() *route {
	path := c.r.URL.RawPath
	if path == "" {
		path = c.r.URL.Path // nothing in it was encoded
	}
	encoded := c.r.URL.RawPath != ""
	if path == "" || path[0] != '/' {
		return nil
	}
	path = strings.TrimSuffix(path[1:], "/")
	n := 0
	for more := true; more; n++ {
		if n == maxSegments {
			return nil
		}
		var segment string
		segment, path, more = strings.Cut(path, "/")
		if encoded {
			decoded, err := url.PathUnescape(segment)
			if err != nil {
				return nil
			}
			segment = decoded
		}
		c.segments[n] = segment
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range routes[n] {
		if r := &routes[n][i]; r.method == method && r.matches(c.segments[:n]) {
			return r
		}
	}
	return nil
}

func (r *route) matches(segments []string) bool {
	for i, s := range r.segments {
		if s != "" && s != segments[i] {
			return false
		}
	}
	return true
}

// Endpoints lists every endpoint as method and pattern.
func Endpoints() []string {
	var endpoints []string
	for _, group := range routes {
		for _, r := range group {
			endpoints = append(endpoints, r.method+" "+r.pattern)
		}
	}
	return endpoints
}
