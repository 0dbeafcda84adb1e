package apiserver

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"freshet/api/v1alpha1"
	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/pipeline"
)

// auditNotes collects the data of a call for its audit record. A call that has timed out may still
// be running when the record is written, so the fields need a lock.
type auditNotes struct {
	mu         sync.Mutex // protects the fields below
	principal  *identity.Principal
	attributes authorizer.Attributes
	permission access.Permission
	scope      access.Scope
	name       string
	decision   access.Decision
	service    bool // the service itself is calling
}

type auditNotesKey struct{}

func withAuditNotes(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), auditNotesKey{}, &auditNotes{}))
}

// auditNotesOf returns the call's notes, or unused ones outside the handler chain.
func auditNotesOf(ctx context.Context) *auditNotes {
	if n, ok := ctx.Value(auditNotesKey{}).(*auditNotes); ok {
		return n
	}
	return &auditNotes{}
}

func (n *auditNotes) setPrincipal(principal *identity.Principal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.principal = principal
}

func (n *auditNotes) setService() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.service = true
}

func (n *auditNotes) byService() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.service
}

// recordDecision records the decision of the handler chain's authorizer.
func (n *auditNotes) recordDecision(a authorizer.Attributes, permission access.Permission, scope access.Scope,
	decision access.Decision,
) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.attributes != nil {
		return // an apply also checks whether it may create the object
	}
	n.attributes, n.name = a, a.GetName()
	n.permission, n.scope, n.decision = permission, scope, decision
}

// recordObject records the object and the decision about it.
func (n *auditNotes) recordObject(name string, permission access.Permission, scope access.Scope,
	decision access.Decision,
) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.attributes != nil && n.attributes.GetVerb() == "deletecollection" {
		return // one of many; the record is about the whole call
	}
	n.name, n.permission, n.scope, n.decision = name, permission, scope, decision
}

// audited reports whether a call gets an audit record: every write that is not a dry run, and every
// denial. Reads and self reviews do not.
func audited(info *request.RequestInfo, r *http.Request, status int) bool {
	if pipeline.Denied(status) {
		return true
	}
	if !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupName &&
		(info.APIGroup != "" || info.Resource != "namespaces") {
		return false
	}
	switch info.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.URL.Query().Get("dryRun") == ""
	}
	return false
}

// record returns the audit record of a finished call.
func (n *auditNotes) record(kinds kinds, info *request.RequestInfo, r *http.Request, status int) audit.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := pipeline.Record(r, "resources", n.principal,
		pipeline.Authorization{Permission: n.permission, Decision: n.decision},
		status)
	out.Verb, out.Resource, out.Organization = info.Verb, info.Resource, info.Namespace
	if info.Subresource != "" {
		out.Resource += "/" + info.Subresource
	}
	if !info.IsResourceRequest {
		out.Resource = kinds.route(info.Path)
	}
	out.Scope = n.scopeText(info)
	return out
}

// scopeText returns the scope of the object of a call. It appends the name of objects whose kind has no
// scope of its own.
func (n *auditNotes) scopeText(info *request.RequestInfo) string {
	scope := n.scope
	if scope == (access.Scope{}) {
		if info.Namespace == "" {
			return ""
		}
		scope.Organization = info.Namespace
	}
	text := scope.String()
	name := n.name
	if name == "" {
		name = info.Name
	}
	if name != "" && !strings.HasSuffix(text, "/"+name) {
		text += "/" + strings.TrimSuffix(info.Resource, "s") + "/" + name
	}
	return text
}

// writeAudit writes the audit record of a finished call, unless the service made it.
func writeAudit(c *genericapiserver.Config, kinds kinds, r *http.Request, rec *web.Record, auditor pipeline.Auditor) {
	n := auditNotesOf(r.Context())
	if n.byService() {
		return
	}
	info, err := c.RequestInfoResolver.NewRequestInfo(r)
	if err != nil {
		return // the API machinery has rejected this path with 400
	}
	status := rec.Status
	if status == 0 {
		status = http.StatusOK
	}
	if audited(info, r, status) {
		auditor.Record(n.record(kinds, info, r, status))
	}
}
