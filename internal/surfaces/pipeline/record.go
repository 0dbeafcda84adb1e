package pipeline

import (
	"net/http"
	"strings"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
	"freshet/internal/ops/audit"
)

// Asked is a permission that a call needed, on what, and what gave it.
type Asked struct {
	Permission access.Permission // "" when nothing was asked for
	Scope      access.Scope
	Decision   access.Decision
}

// Denied says whether a status means that the caller was turned away.
func Denied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// Record makes the audit record of a request; who is nil when nobody was
// recognized. Verb and resource are those of the permission, or else the method
// and the route. A surface that knows better sets the fields afterwards.
func Record(r *http.Request, surface string, who *identity.Principal, asked Asked, status int) audit.Record {
	rec := web.RecordOf(r.Context())
	out := audit.Record{
		Time: time.Now(), Surface: surface, Verb: strings.ToLower(r.Method), Resource: rec.Route,
		Permission: string(asked.Permission), Decision: audit.Allowed, Status: status,
		Source: r.RemoteAddr, UserAgent: r.UserAgent(), RequestID: rec.RequestID,
	}
	if Denied(status) {
		out.Decision = audit.Denied
	} else {
		out.By, out.Role, out.Binding = string(asked.Decision.By), asked.Decision.Role, asked.Decision.Binding
	}
	if who != nil {
		out.Principal, out.KeyID = who.Name, who.KeyID
	}
	if asked.Scope != (access.Scope{}) {
		out.Organization, out.Scope = asked.Scope.Organization, asked.Scope.String()
	}
	if parts := strings.Split(string(asked.Permission), "."); len(parts) == 3 {
		out.Resource, out.Verb = parts[1], parts[2]
	}
	return out
}
