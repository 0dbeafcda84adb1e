package messageapi

import "strings"

// RouteInfo describes a route, so that a test can hold the OpenAPI document
// against it.
type RouteInfo struct {
	Method     string
	Pattern    string
	Permission string
	Extension  bool // an extension (docs/spec/messages.md#m12)
}

// Routes lists every route but that of the document itself.
func Routes() []RouteInfo {
	var list []RouteInfo
	for _, r := range routes {
		if r.Value.needs != "" {
			list = append(list, RouteInfo{r.Method, r.Pattern, string(r.Value.needs), !strings.HasSuffix(r.Pattern, "/message")})
		}
	}
	return list
}
