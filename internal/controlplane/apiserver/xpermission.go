package apiserver

import (
	"net/http"
	"strings"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"freshet/internal/identity/access"
)

// permissionKey is the extension of an OpenAPI operation that contains the required permission.
const permissionKey = "x-permission"

// permissionOf returns the permission that a call of a documented path requires.
func permissionOf(path, method string) (access.Permission, bool) {
	rest, ok := strings.CutPrefix(path, apiPrefix)
	if !ok {
		return "", false
	}
	rest, watching := strings.CutPrefix(rest, "watch/")
	parts := strings.Split(strings.TrimPrefix(rest, "namespaces/{namespace}/"), "/")
	named, subresource := len(parts) > 1, ""
	if len(parts) > 2 {
		subresource = parts[2]
	}
	verb := ""
	switch {
	case watching || (method == http.MethodGet && !named):
		verb = "list"
	case method == http.MethodGet:
		verb = "get"
	case method == http.MethodPost && (!named || subresource != ""):
		verb = "create"
	case method == http.MethodPost, method == http.MethodPut, method == http.MethodPatch:
		verb = "update"
	case method == http.MethodDelete:
		verb = "delete"
	}
	permission, ok := access.ForVerb(parts[0], subresource, verb)
	return permission, ok && permission.Known()
}

func addPermissionsV2(doc *spec.Swagger) {
	for path, item := range doc.Paths.Paths {
		for method, operation := range map[string]*spec.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put,
			http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
		} {
			if permission, ok := permissionOf(path, method); ok && operation != nil {
				operation.AddExtension(permissionKey, string(permission))
			}
		}
	}
}

func addPermissionsV3(doc *spec3.OpenAPI) {
	for path, item := range doc.Paths.Paths {
		for method, operation := range map[string]*spec3.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put,
			http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
		} {
			if permission, ok := permissionOf(path, method); ok && operation != nil {
				operation.AddExtension(permissionKey, string(permission))
			}
		}
	}
}
