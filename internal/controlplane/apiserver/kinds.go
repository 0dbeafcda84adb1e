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

// kinds are what is served, by plural. Everything here that has to know the
// kinds asks this list, which is that of Config.Kinds.
type kinds map[string]store.Definition

func kindsOf(definitions []store.Definition) kinds {
	k := make(kinds, len(definitions))
	for _, definition := range definitions {
		k[definition.Info().Plural] = definition
	}
	return k
}

func (k kinds) serves(resource string) bool { return k[resource] != nil }

// info is empty for a resource that is not served.
func (k kinds) info(resource string) store.Info {
	if definition := k[resource]; definition != nil {
		return definition.Info()
	}
	return store.Info{}
}

// empty makes an object of the kind that a call is about; nil for none of ours.
func (k kinds) empty(scheme *runtime.Scheme, r *http.Request) runtime.Object {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || info.APIGroup != v1alpha1.GroupName || !k.serves(info.Resource) {
		return nil
	}
	object, err := scheme.New(v1alpha1.SchemeGroupVersion.WithKind(k.info(info.Resource).Kind))
	if err != nil {
		return nil // every kind that is served is in the scheme
	}
	return object
}

// count tells how many objects of a kind an organization has.
func (k kinds) count(ctx context.Context, organization, plural string) (int64, error) {
	if definition := k[plural]; definition != nil {
		return definition.Count(ctx, organization)
	}
	return 0, nil
}

// live is the stored object that a call is about; nil when there is none.
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

// scopeOf is as much as a path says about where something lies.
func (k kinds) scopeOf(a authorizer.Attributes) access.Scope {
	if definition := k[a.GetResource()]; definition != nil {
		return definition.ScopeOfName(a.GetNamespace(), a.GetName())
	}
	return access.Scope{Organization: a.GetNamespace()}
}

// route is the pattern of a path, for metrics: names and namespaces left out.
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
				part = "other" // made-up names stay out of the metrics
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
