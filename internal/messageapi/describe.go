package messageapi

import (
	"slices"
	"strings"

	"freshet/internal/access"
)

// RouteInfo describes a route of the surface, so that a test can hold the
// OpenAPI document against it.
type RouteInfo struct {
	Method      string
	Pattern     string
	Permissions string // any one of them is enough; "" when the call shows what the caller may see
	Extension   bool   // not in spec 2 nor in the part of Pulsar's admin API that it leans on
}

// Routes lists every route.
func Routes() []RouteInfo {
	var list []RouteInfo
	for shape, operations := range operations {
		for _, op := range operations {
			list = append(list, RouteInfo{
				Method: op.method, Pattern: op.route, Permissions: string(op.needs),
				Extension: shape != shapeTopicMessage && shape != shapeMessage,
			})
		}
	}
	for _, r := range adminRoutes() {
		list = append(list, RouteInfo{Method: r.method, Pattern: r.pattern, Permissions: joinPermissions(r.needs)})
	}
	return list
}

func joinPermissions(needs []access.Permission) string {
	list := make([]string, len(needs))
	for i, p := range needs {
		list[i] = string(p)
	}
	return strings.Join(slices.Compact(list), " or ")
}
