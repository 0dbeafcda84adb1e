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

// Authorization is a permission check of a call: the permission, its scope and the decision.
type Authorization struct {
	Permission access.Permission // "" if no permission was checked
	Scope      access.Scope
	Decision   access.Decision
}

// Denied reports whether a status means that the caller was denied: 401 or 403.
func Denied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// Record returns the audit record of a request. who is nil if the caller was not
// authenticated. Verb and resource are those of the permission, or the method and the
// route without one. A surface can overwrite fields afterwards.
func Record(r *http.Request, surface string, principal *identity.Principal, authorization Authorization,
	status int,
) audit.Record {
	rec := web.RecordOf(r.Context())
	out := audit.Record{
		Time: time.Now(), Surface: surface, Verb: strings.ToLower(r.Method), Resource: rec.Route,
		Permission: string(authorization.Permission), Decision: audit.Allowed, Status: status,
		Source: r.RemoteAddr, UserAgent: r.UserAgent(), RequestID: rec.RequestID,
	}
	if Denied(status) {
		out.Decision = audit.Denied
	} else {
		out.By, out.Role, out.Binding = string(authorization.Decision.By), authorization.Decision.Role,
			authorization.Decision.Binding
	}
	if principal != nil {
		out.Principal, out.KeyID = principal.Name, principal.KeyID
	}
	if authorization.Scope != (access.Scope{}) {
		out.Organization, out.Scope = authorization.Scope.Organization, authorization.Scope.String()
	}
	if parts := strings.Split(string(authorization.Permission), "."); len(parts) == 3 {
		out.Resource, out.Verb = parts[1], parts[2]
	}
	return out
}
