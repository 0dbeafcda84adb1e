package registryapi

import (
	"net/http"
	"strings"

	"freshet/internal/audit"
	"freshet/internal/web"
)

// audit records changes, and whatever was denied; err is the call's outcome.
func (c *call) audit(err error) {
	status := http.StatusOK
	if err != nil {
		number, _ := numberOf(err, "")
		status = statusOf(number)
	}
	denied := status == http.StatusUnauthorized || status == http.StatusForbidden
	if c.h.opts.Auditor == nil || !denied && !c.changed {
		return
	}
	rec := web.RecordOf(c.r.Context())
	r := audit.Record{
		Surface: "registry", Verb: strings.ToLower(c.r.Method), Resource: rec.Route,
		Permission: string(c.permission), Decision: audit.Allowed, Status: status,
		Organization: c.Target.Scope.Organization, Scope: c.Target.Scope.String(),
		By: string(c.decision.By), Role: c.decision.Role, Binding: c.decision.Binding,
		Source: c.r.RemoteAddr, UserAgent: c.r.UserAgent(), RequestID: rec.RequestID,
	}
	if denied {
		r.Decision = audit.Denied
	}
	if c.principal != nil {
		r.Principal, r.KeyID = c.principal.Name, c.principal.KeyID
	}
	if parts := strings.Split(string(c.permission), "."); len(parts) == 3 {
		r.Scope, r.Resource, r.Verb = c.scope.String(), parts[1], parts[2]
	}
	c.h.opts.Auditor.Record(r)
}
