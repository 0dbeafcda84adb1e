package apiserver

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/store"
	"freshet/internal/identity/access"
)

// kinds contains the served kinds by plural. It is built from Config.Kinds.
type kinds map[string]store.Definition

func kindsOf(definitions []store.Definition) kinds {
	k := make(kinds, len(definitions))
	for _, definition := range definitions {
		k[definition.Info().Plural] = definition
	}
	return k
}

func (k kinds) serves(resource string) bool { return k[resource] != nil }

// info returns the description of a kind; it is empty for a resource that is not served.
func (k kinds) info(resource string) store.Info {
	if definition := k[resource]; definition != nil {
		return definition.Info()
	}
	return store.Info{}
}

// empty returns a new object of the kind that a call is about; nil for other API groups.
func (k kinds) empty(scheme *runtime.Scheme, r *http.Request) runtime.Object {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || info.APIGroup != v1alpha1.GroupName || !k.serves(info.Resource) {
		return nil
	}
	object, err := scheme.New(v1alpha1.SchemeGroupVersion.WithKind(k.info(info.Resource).Kind))
	if err != nil {
		return nil // cannot happen: every served kind is in the scheme
	}
	return object
}

// count returns the number of objects of a kind in an organization.
func (k kinds) count(ctx context.Context, organization, plural string) (int64, error) {
	if definition := k[plural]; definition != nil {
		return definition.Count(ctx, organization)
	}
	return 0, nil
}

// live returns the stored object that a call is about; nil if there is none.
func (k kinds) live(r *http.Request) runtime.Object {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || info.APIGroup != v1alpha1.GroupName || !k.serves(info.Resource) {
		return nil
	}
	object, ok := k[info.Resource].Object(r.Context(), info.Namespace, info.Name)
	if !ok {
		return nil
	}
	return object
}

// scopeOf returns the scope of a call as far as its path determines it.
func (k kinds) scopeOf(a authorizer.Attributes) access.Scope {
	if definition := k[a.GetResource()]; definition != nil {
		return definition.ScopeOfName(a.GetNamespace(), a.GetName())
	}
	return access.Scope{Organization: a.GetNamespace()}
}

// route returns the pattern of a path for metrics, without names and namespaces.
func (k kinds) route(path string) string {
	rest, ok := strings.CutPrefix(path, apiPrefix)
	if !ok {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		switch first {
		case "api", "apis", "openapi", "healthz", "livez", "readyz", "version":
			return "/" + first
		}
		return "other"
	}
	parts := strings.Split(rest, "/")
	pattern := make([]string, 0, len(parts))
	if parts[0] == "namespaces" && len(parts) > 1 {
		pattern = append(pattern, "namespaces/{namespace}")
		parts = parts[2:]
	}
	for i, part := range parts {
		switch i {
		case 0:
			if !k.serves(part) {
				part = "other" // keeps arbitrary names out of the metrics
			}
			pattern = append(pattern, part)
		case 1:
			pattern = append(pattern, "{name}")
		case 2:
			if part != "status" && part != "token" && part != "rotate" {
				part = "other"
			}
			pattern = append(pattern, part)
		}
	}
	return apiPrefix + strings.Join(pattern, "/")
}
