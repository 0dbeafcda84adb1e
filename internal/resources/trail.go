package resources

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/audit"
	"freshet/internal/identity"
	"freshet/internal/web"
)

// footprint is what is learnt about a call on its way through, for its audit
// record. A call that was cut off by its timeout may still be running when the
// record is written, hence the lock.
type footprint struct {
	mu         sync.Mutex
	principal  *identity.Principal
	attributes authorizer.Attributes
	permission access.Permission
	scope      access.Scope
	name       string
	decision   access.Decision
	ours       bool // the service itself is calling
}

type footprintKey struct{}

func withFootprint(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), footprintKey{}, &footprint{}))
}

// footprintOf returns the call's footprint; a spare one outside the chain.
func footprintOf(ctx context.Context) *footprint {
	if f, ok := ctx.Value(footprintKey{}).(*footprint); ok {
		return f
	}
	return &footprint{}
}

func (f *footprint) came(principal *identity.Principal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.principal = principal
}

func (f *footprint) cameFromUs() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ours = true
}

func (f *footprint) isOurs() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ours
}

// asked notes the outcome of the authorizer.
func (f *footprint) asked(a authorizer.Attributes, permission access.Permission, scope access.Scope, decision access.Decision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.attributes != nil {
		return // an apply asks a second time, whether it may create
	}
	f.attributes, f.name = a, a.GetName()
	f.permission, f.scope, f.decision = permission, scope, decision
}

// met notes which object it was, and what the gate said.
func (f *footprint) met(name string, permission access.Permission, scope access.Scope, decision access.Decision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.attributes != nil && f.attributes.GetVerb() == "deletecollection" {
		return // one of many; the call was about all of them
	}
	f.name, f.permission, f.scope, f.decision = name, permission, scope, decision
}

// audited says whether a call is put on the trail: every write that is not a
// dry run, and every denial. Reads, and questions about oneself, are not.
func audited(info *request.RequestInfo, r *http.Request, status int) bool {
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return true
	}
	if !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupName {
		return false
	}
	switch info.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.URL.Query().Get("dryRun") == ""
	}
	return false
}

// record makes the audit record of a finished call.
func (f *footprint) record(info *request.RequestInfo, r *http.Request, status int) audit.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := audit.Record{
		Surface: "resources", Verb: info.Verb, Resource: info.Resource, Organization: info.Namespace,
		Permission: string(f.permission), Decision: audit.Allowed, Status: status,
		By: string(f.decision.By), Role: f.decision.Role, Binding: f.decision.Binding,
		Source: r.RemoteAddr, UserAgent: r.UserAgent(), RequestID: web.RecordOf(r.Context()).RequestID,
	}
	if info.Subresource != "" {
		out.Resource += "/" + info.Subresource
	}
	if !info.IsResourceRequest {
		out.Resource = route(info.Path)
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		out.Decision = audit.Denied
		out.By, out.Role, out.Binding = "", "", ""
	}
	if f.principal != nil {
		out.Principal, out.KeyID = f.principal.Name, f.principal.KeyID
	}
	out.Scope = f.where(info)
	return out
}

// where names the thing a call was about. Kinds that permissions do not tell
// apart by name are named all the same.
func (f *footprint) where(info *request.RequestInfo) string {
	scope := f.scope
	if scope == (access.Scope{}) {
		if info.Namespace == "" {
			return ""
		}
		scope.Organization = info.Namespace
	}
	text := scope.String()
	name := f.name
	if name == "" {
		name = info.Name
	}
	if name != "" && !strings.HasSuffix(text, "/"+name) {
		text += "/" + strings.TrimSuffix(info.Resource, "s") + "/" + name
	}
	return text
}

// leave puts a finished call on the trail, unless the service made it.
func leave(c *genericapiserver.Config, r *http.Request, rec *web.Record, trail func(audit.Record)) {
	f := footprintOf(r.Context())
	if f.isOurs() {
		return
	}
	info, err := c.RequestInfoResolver.NewRequestInfo(r)
	if err != nil {
		return // a path that the machinery has answered with 400
	}
	status := rec.Status
	if status == 0 {
		status = http.StatusOK
	}
	if audited(info, r, status) {
		trail(f.record(info, r, status))
	}
}
