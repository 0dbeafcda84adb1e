package apiserver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"freshet/api/v1alpha1"
	"freshet/internal/base/web"
	"freshet/internal/controlplane/caller"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/surfaces/pipeline"
)

// Authorizer decides what a principal may do; access.Policy implements it. The error of Authorize
// names the missing permission.
type Authorizer interface {
	Authorize(ctx context.Context, principal *identity.Principal, permission access.Permission,
		scope access.Scope) (access.Decision, error)
	Filter(principal *identity.Principal, permission access.Permission, scope access.Scope) access.Filter
	Rules(principal *identity.Principal, scope access.Scope) []access.Rule
}

// publicPaths need no token. The health paths also have one page per check below them.
var publicPaths = []string{"/healthz", "/livez", "/readyz", "/version"}

func isPublic(path string) bool {
	for _, public := range publicPaths {
		if path == public || (public != "/version" && strings.HasPrefix(path, public+"/")) {
			return true
		}
	}
	return false
}

// authentication adapts an Authenticator to the API machinery.
func authentication(from pipeline.Authenticator, audiences []string) authenticator.Request {
	anonymous := &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if token, ok := web.BearerToken(r); ok {
			principal, err := from.Authenticate(r.Context(), token, audiences...)
			if err == nil {
				web.RecordOf(r.Context()).Principal = principal.Name
				auditNotesOf(r.Context()).setPrincipal(principal)
				return &authenticator.Response{User: caller.Caller{Principal: principal}}, true, nil
			}
			if !isPublic(r.URL.Path) {
				recordFailure(r.Context(), err)
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
	kinds      kinds
	reviews    []string // API groups whose reviews every caller may create
}

func (p policy) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if caller.IsService(a.GetUser()) {
		auditNotesOf(ctx).setService()
		return authorizer.DecisionAllow, "", nil
	}
	if !a.IsResourceRequest() {
		return p.authorizePath(a)
	}
	principal, ok := a.GetUser().(caller.Caller)
	if !ok {
		return authorizer.DecisionDeny, "anonymous callers may not use the API", nil
	}
	permission, known := access.ForVerb(a.GetResource(), a.GetSubresource(), a.GetVerb())
	if !known { // includes the impersonation verbs
		return authorizer.DecisionDeny, "verb " + a.GetVerb() + " is not served", nil
	}
	if slices.Contains(p.reviews, a.GetAPIGroup()) && a.GetVerb() == "create" {
		return authorizer.DecisionAllow, "", nil
	}
	if isNamespace(a) || isEvent(a) || isQuota(a) {
		reason := authorizeNamespace(principal, a)
		switch {
		case isEvent(a):
			reason = authorizeEvent(principal, a)
		case isQuota(a):
			reason = authorizeQuota(principal, a)
		}
		auditNotesOf(ctx).recordDecision(a, permission, access.Scope{Organization: a.GetNamespace()},
			access.Decision{Allowed: reason == ""})
		if reason != "" {
			return authorizer.DecisionDeny, reason, nil
		}
		return authorizer.DecisionAllow, "", nil
	}
	if a.GetAPIGroup() != v1alpha1.GroupName {
		return authorizer.DecisionDeny, "group " + a.GetAPIGroup() + " is not served", nil
	}
	scope := p.kinds.scopeOf(a)
	decision, err := p.decide(ctx, principal, a, permission, scope)
	auditNotesOf(ctx).recordDecision(a, permission, scope, decision)
	if err != nil {
		return authorizer.DecisionDeny, err.Error(), nil //nolint:nilerr // a denial is a decision, not a fault
	}
	return authorizer.DecisionAllow, "", nil
}

// decide rejects callers without any permission for the path. A caller whose permissions cover only
// part of it passes, and objects.go checks every object.
func (p policy) decide(ctx context.Context, principal caller.Caller, a authorizer.Attributes,
	permission access.Permission,
	scope access.Scope,
) (access.Decision, error) {
	if reason := p.forbid(principal, a); reason != "" {
		return access.Decision{}, errors.New(reason)
	}
	if p.kinds.info(a.GetResource()).ClusterScoped {
		return access.Decision{Allowed: true}, nil // every caller may read predefined roles
	}
	filter := p.authorizer.Filter(principal.Principal, permission, scope)
	if !filter.None() {
		return filter.Decision(), nil
	}
	decision, err := p.authorizer.Authorize(ctx, principal.Principal, permission, scope)
	if err != nil && (p.mayBeOwn(principal, a) || p.callsItself(principal, a)) {
		return decision, nil // the object contains its account, and the subresource decides, so both decide later
	}
	return decision, err
}

// callsItself reports whether an account calls a subresource on itself that it may call without a
// role, such as the rotation of its credentials.
func (p policy) callsItself(principal caller.Caller, a authorizer.Attributes) bool {
	subresource, _ := p.kinds.subresource(a.GetResource(), a.GetSubresource())
	return subresource.BySelf && a.GetVerb() == "create" &&
		a.GetName() == principal.ServiceAccount && principal.ServiceAccount != "" &&
		principal.Organization == a.GetNamespace()
}

// mayBeOwn reports whether an account reads an object that may be its own, such as an API key.
func (p policy) mayBeOwn(principal caller.Caller, a authorizer.Attributes) bool {
	return p.kinds.info(a.GetResource()).OwnedByAccount && a.GetVerb() == "get" && a.GetName() != "" &&
		principal.ServiceAccount != "" && principal.Organization == a.GetNamespace()
}

// forbid returns a reason to reject the call that holds for every role, or "".
func (p policy) forbid(principal caller.Caller, a authorizer.Attributes) string {
	writes := !a.IsReadOnly()
	switch {
	case writes && p.kinds.info(a.GetResource()).ReadOnly:
		return a.GetResource() + " are created by the service and cannot be changed"
	case writes && a.GetSubresource() == "status" && !principal.System:
		return "status is written by the service only"
	case a.GetNamespace() == "" && !p.kinds.info(a.GetResource()).ClusterScoped && !principal.System:
		return "only a system administrator may access all organizations; put one into the path: " +
			"/namespaces/{organization}/" + a.GetResource()
	}
	return ""
}

func (policy) authorizePath(a authorizer.Attributes) (authorizer.Decision, string, error) {
	path := a.GetPath()
	if isPublic(path) {
		return authorizer.DecisionAllow, "", nil
	}
	if _, ok := a.GetUser().(caller.Caller); !ok {
		return authorizer.DecisionDeny, "anonymous callers may not use the API", nil
	}
	for _, prefix := range []string{"/apis", "/openapi", "/api"} {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionDeny, "path is not served", nil
}
