// Package caller identifies the caller of a resource API request. The handler chain in ../apiserver
// puts the caller into the request's context; the store and the kinds read it from there and do not
// depend on the chain.
package caller

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/internal/identity"
)

// Caller is an authenticated principal in the form that the API machinery uses.
type Caller struct{ *identity.Principal }

var _ user.Info = Caller{}

// GetName implements user.Info.
func (c Caller) GetName() string { return c.Name }

// GetUID implements user.Info.
func (c Caller) GetUID() string { return "" }

// GetGroups implements user.Info.
func (c Caller) GetGroups() []string { return []string{user.AllAuthenticated} }

// GetExtra implements user.Info.
func (c Caller) GetExtra() map[string][]string { return nil }

// Principal returns the caller of a request, or nil for the service itself.
func Principal(ctx context.Context) *identity.Principal {
	if info, ok := request.UserFrom(ctx); ok {
		if c, ok := info.(Caller); ok {
			return c.Principal
		}
	}
	return nil
}

// IsService reports whether the service itself is calling over its loopback client. The API
// machinery gives this group to the holder of the loopback token, and our authenticator gives it to
// no caller.
func IsService(info user.Info) bool {
	_, isCaller := info.(Caller)
	return !isCaller && slices.Contains(info.GetGroups(), user.SystemPrivilegedGroup)
}

// ByService reports whether the service itself made the request of ctx. A context without a user
// did not come through the handler chain and belongs to the service.
func ByService(ctx context.Context) bool {
	info, ok := request.UserFrom(ctx)
	return !ok || IsService(info)
}
