package adminapi

import (
	"slices"
	"strings"
)

// RouteInfo describes a route, so that a test can compare it with the OpenAPI
// document.
type RouteInfo struct {
	Method      string
	Pattern     string
	Permissions string // any one of them is enough; "" if the handler authorizes the call
	Extension   bool
}

// Routes lists every route.
func Routes() []RouteInfo {
	var list []RouteInfo
	for _, r := range routes() {
		needs := make([]string, len(r.Value.permissions))
		for i, p := range r.Value.permissions {
			needs[i] = string(p)
		}
		list = append(list, RouteInfo{
			r.Method, r.Pattern, strings.Join(slices.Compact(needs), " or "),
			strings.HasPrefix(r.Pattern, kafkaRoot+"groups") || strings.HasSuffix(r.Pattern, "/history"),
		})
	}
	return list
}
