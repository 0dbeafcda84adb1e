// Package caller tells who makes a request of the resource API. The handler
// chain in .. puts the caller into the request's context; the store and the
// kinds ask for them here, without knowing the chain.
package caller

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"freshet/internal/identity"
)

// Caller is an authenticated principal as the machinery's user.
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

// IsService says that the service itself is calling, over its loopback client:
// the library gives this group to the holder of the loopback token, and our
// authentication to nobody.
func IsService(info user.Info) bool {
	_, outsider := info.(Caller)
	return !outsider && slices.Contains(info.GetGroups(), user.SystemPrivilegedGroup)
}

// ByService says so of the request of ctx. What carries no user at all did not
// come through the chain, and is the service's own.
func ByService(ctx context.Context) bool {
	info, ok := request.UserFrom(ctx)
	return !ok || IsService(info)
}
