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
	"freshet/internal/ops/quota"
)

// kinds contains the served kinds. It is built from Config.Kinds.
type kinds struct {
	byResource map[string]store.Definition // by Info.Plural
	resources  map[string]string           // Info.Plural by Info.Kind in lower case
}

func kindsOf(definitions []store.Definition) kinds {
	k := kinds{map[string]store.Definition{}, map[string]string{}}
	for _, definition := range definitions {
		info := definition.Info()
		k.byResource[info.Plural] = definition
		k.resources[strings.ToLower(info.Kind)] = info.Plural
	}
	return k
}

func (k kinds) serves(resource string) bool { return k.byResource[resource] != nil }

// ofKind returns the resource and the definition of a kind; ok is false for a kind that is not served.
// It ignores letter case, because owner references may contain any text.
func (k kinds) ofKind(kind string) (resource string, definition store.Definition, ok bool) {
	resource, ok = k.resources[strings.ToLower(kind)]
	return resource, k.byResource[resource], ok
}

// info returns the description of a kind; it is empty for a resource that is not served.
func (k kinds) info(resource string) store.Info {
	if definition := k.byResource[resource]; definition != nil {
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

// Count implements quotas.Kinds.
func (k kinds) Count(ctx context.Context, organization string) (map[quota.Resource]int64, error) {
	used := map[quota.Resource]int64{}
	for _, definition := range k.byResource {
		limited, ok := definition.Quota()
		if !ok {
			continue
		}
		n, err := definition.Count(ctx, organization)
		if err != nil {
			return nil, err
		}
		used[limited] = n
	}
	return used, nil
}

// KindOf implements quotas.Kinds.
func (k kinds) KindOf(limited quota.Resource) string {
	for _, definition := range k.byResource {
		if resource, ok := definition.Quota(); ok && resource == limited {
			return definition.Info().Kind
		}
	}
	return ""
}

// rewriteApply lets the kind that a call is about change the decoded body of an apply.
func (k kinds) rewriteApply(r *http.Request, body map[string]any) bool {
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || info.APIGroup != v1alpha1.GroupName || !k.serves(info.Resource) {
		return false
	}
	kind := k.byResource[info.Resource]
	return kind.RewriteApply(body, func() runtime.Object {
		object, ok := kind.Object(r.Context(), info.Namespace, info.Name)
		if !ok {
			return nil
		}
		return object
	})
}

// scopeOf returns the scope of a call as far as its path determines it.
func (k kinds) scopeOf(a authorizer.Attributes) access.Scope {
	if definition := k.byResource[a.GetResource()]; definition != nil {
		return definition.ScopeOfName(a.GetNamespace(), a.GetName())
	}
	return access.Scope{Organization: a.GetNamespace()}
}

// statusName is the name of the subresource that every kind has.
const statusName = "status"

// subresource returns the description of a kind's subresource other than the status.
func (k kinds) subresource(resource, name string) (store.SubresourceInfo, bool) {
	if definition := k.byResource[resource]; definition != nil {
		for _, subresource := range definition.Subresources() {
			if info := subresource.Info(); info.Name == name {
				return info, true
			}
		}
	}
	return store.SubresourceInfo{}, false
}

// calledSubresource returns the subresource that a POST is about, if its path is prefix followed by
// {namespace}/{resource}/{name}/{subresource}.
func (k kinds) calledSubresource(r *http.Request, prefix string) (store.SubresourceInfo, bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok || r.Method != http.MethodPost {
		return store.SubresourceInfo{}, false
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 4 {
		return store.SubresourceInfo{}, false
	}
	return k.subresource(parts[1], parts[3])
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
			if _, known := k.subresource(parts[0], part); !known && part != statusName {
				part = "other"
			}
			pattern = append(pattern, part)
		}
	}
	return apiPrefix + strings.Join(pattern, "/")
}
