package messageapi

import (
	"net/http"
	"strings"

	"freshet/internal/audit"
	"freshet/internal/web"
)

// audit records changes, and whatever was denied. Messages themselves are not
// recorded: there are too many, and they are the users' own.
func (c *call) audit(code int) {
	if c.api.opts.Auditor == nil {
		return
	}
	denied := code == http.StatusUnauthorized || code == http.StatusForbidden
	changes := c.surface != messages && c.r.Method != http.MethodGet && c.route != nil
	if !denied && !changes {
		return
	}
	rec := web.RecordOf(c.r.Context())
	r := audit.Record{
		Surface: surfaceName, Verb: strings.ToLower(c.r.Method), Resource: rec.Route,
		Permission: string(c.permission), Decision: audit.Allowed, Status: code,
		Source: c.r.RemoteAddr, UserAgent: c.r.UserAgent(), RequestID: rec.RequestID,
		By: string(c.decision.By), Role: c.decision.Role, Binding: c.decision.Binding,
	}
	if denied {
		r.Decision = audit.Denied
	}
	if c.principal != nil {
		r.Principal, r.KeyID = c.principal.Name, c.principal.KeyID
	}
	if c.cluster.Broker != nil {
		scope := c.scope()
		r.Organization, r.Scope = scope.Organization, scope.String()
	}
	if parts := strings.Split(string(c.permission), "."); len(parts) == 3 {
		r.Resource, r.Verb = parts[1], parts[2]
	}
	c.api.opts.Auditor.Record(r)
}
