package resources

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/identity"
	"freshet/internal/web"
)

// Verifier says who holds a bearer token that is good for this API.
type Verifier interface {
	VerifyToken(ctx context.Context, token string) (*identity.Principal, error)
}

// Authorizer says what a principal may do; access.Policy is one. The error of
// Authorize names the permission that is missing.
type Authorizer interface {
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission, scope access.Scope) (access.Decision, error)
	Filter(who *identity.Principal, permission access.Permission, scope access.Scope) access.Filter
	Rules(who *identity.Principal, scope access.Scope) []access.Rule
}

// Caller is a verified principal in the machinery's clothes.
type Caller struct{ *identity.Principal }

// GetName implements user.Info.
func (c Caller) GetName() string { return c.Name }

// GetUID implements user.Info.
func (c Caller) GetUID() string { return "" }

// GetGroups implements user.Info.
func (c Caller) GetGroups() []string { return []string{user.AllAuthenticated} }

// GetExtra implements user.Info.
func (c Caller) GetExtra() map[string][]string { return nil }

// PrincipalFrom returns the caller of a request, or nil for the service itself.
func PrincipalFrom(ctx context.Context) *identity.Principal {
	if info, ok := request.UserFrom(ctx); ok {
		if caller, ok := info.(Caller); ok {
			return caller.Principal
		}
	}
	return nil
}

// publicPaths need no token; healthz and its kin have one page per check below them.
var publicPaths = []string{"/healthz", "/livez", "/readyz", "/version"}

func isPublic(path string) bool {
	for _, public := range publicPaths {
		if path == public || (public != "/version" && strings.HasPrefix(path, public+"/")) {
			return true
		}
	}
	return false
}

// authentication turns a Verifier into the machinery's form.
func authentication(verifier Verifier) authenticator.Request {
	anonymous := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if token, ok := web.BearerToken(r); ok {
			principal, err := verifier.VerifyToken(r.Context(), token)
			if err == nil {
				web.RecordOf(r.Context()).Principal = principal.Name
				footprintOf(r.Context()).came(principal)
				return &authenticator.Response{User: Caller{principal}}, true, nil
			}
			if !isPublic(r.URL.Path) {
				return nil, false, err
			}
		}
		if isPublic(r.URL.Path) {
			return &authenticator.Response{User: anonymous}, true, nil
		}
		return nil, false, nil
	})
}

// policy decides what a caller may do on this API.
type policy struct {
	authorizer Authorizer
	readOnly   map[string]bool // resources that only the service writes
	cluster    map[string]bool // resources without a namespace
	reviews    []string        // groups whose create calls anyone may make about themselves
}

func (p policy) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if isService(a.GetUser()) {
		footprintOf(ctx).cameFromUs()
		return authorizer.DecisionAllow, "", nil
	}
	if !a.IsResourceRequest() {
		return p.authorizePath(a)
	}
	caller, ok := a.GetUser().(Caller)
	if !ok {
		return authorizer.DecisionDeny, "anonymous callers may not use the API", nil
	}
	permission, known := access.ForVerb(a.GetResource(), a.GetSubresource(), a.GetVerb())
	if !known { // the many impersonation verbs among them
		return authorizer.DecisionDeny, "verb " + a.GetVerb() + " is not served", nil
	}
	if slices.Contains(p.reviews, a.GetAPIGroup()) && a.GetVerb() == "create" {
		return authorizer.DecisionAllow, "", nil
	}
	if isNamespace(a) {
		return authorizer.DecisionDeny, "namespaces are there by being used, and are not objects of this API", nil
	}
	if a.GetAPIGroup() != v1alpha1.GroupName {
		return authorizer.DecisionDeny, "group " + a.GetAPIGroup() + " is not served", nil
	}
	scope := scopeOf(a)
	decision, err := p.decide(ctx, caller, a, permission, scope)
	footprintOf(ctx).asked(a, permission, scope, decision)
	if err != nil {
		return authorizer.DecisionDeny, err.Error(), nil //nolint:nilerr // a denial is a decision, not a fault
	}
	return authorizer.DecisionAllow, "", nil
}

// decide turns away whoever has no business here at all. Those whose rights end
// within what the path names come in, and the gate looks at every object.
func (p policy) decide(ctx context.Context, caller Caller, a authorizer.Attributes, permission access.Permission, scope access.Scope) (access.Decision, error) {
	if reason := p.forbid(caller, a); reason != "" {
		return access.Decision{}, errors.New(reason)
	}
	if p.cluster[a.GetResource()] {
		return access.Decision{Allowed: true}, nil // predefined roles are for everyone to read
	}
	filter := p.authorizer.Filter(caller.Principal, permission, scope)
	if !filter.None() {
		return filter.Decision(), nil
	}
	decision, err := p.authorizer.Authorize(ctx, caller.Principal, permission, scope)
	if err != nil && mayBeOwnKey(caller, a) {
		return decision, nil // whose key it is stands in the key
	}
	return decision, err
}

func mayBeOwnKey(caller Caller, a authorizer.Attributes) bool {
	return a.GetResource() == "apikeys" && a.GetVerb() == "get" && a.GetName() != "" &&
		caller.ServiceAccount != "" && caller.Organization == a.GetNamespace()
}

// isService knows the service's own loopback client: the library gives this
// group to the holder of the loopback token, and our authentication to nobody.
func isService(info user.Info) bool {
	_, outsider := info.(Caller)
	return !outsider && slices.Contains(info.GetGroups(), user.SystemPrivilegedGroup)
}

// forbid holds whatever a role says.
func (p policy) forbid(caller Caller, a authorizer.Attributes) string {
	writes := !a.IsReadOnly()
	switch {
	case writes && p.readOnly[a.GetResource()]:
		return a.GetResource() + " come with the service and cannot be changed"
	case writes && a.GetSubresource() == "status" && !caller.System:
		return "status is set by the service"
	case a.GetNamespace() == "" && !p.cluster[a.GetResource()] && !caller.System:
		return "only a system administrator may look across organizations; name one in the path: /namespaces/{organization}/" + a.GetResource()
	}
	return ""
}

func (policy) authorizePath(a authorizer.Attributes) (authorizer.Decision, string, error) {
	path := a.GetPath()
	if isPublic(path) {
		return authorizer.DecisionAllow, "", nil
	}
	if _, ok := a.GetUser().(Caller); !ok {
		return authorizer.DecisionDeny, "anonymous callers may not use the API", nil
	}
	for _, prefix := range []string{"/apis", "/openapi", "/api"} {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionDeny, "path is not served", nil
}

// scopeOf is as much as a path says about where something lies.
func scopeOf(a authorizer.Attributes) access.Scope {
	scope := access.Scope{Organization: a.GetNamespace()}
	switch a.GetResource() {
	case "serviceaccounts":
		scope.ServiceAccount = a.GetName()
	case "apikeys":
		scope.APIKey = a.GetName()
	case "messaginginstances":
		scope.Instance = a.GetName()
	case "messagingclusters":
		scope.Cluster = a.GetName()
	}
	return scope
}
