package role

import (
	"freshet/internal/controlplane/reconcile"
	"freshet/internal/identity/access"
)

// Put implements store.Observer. It updates the role in the policy.
func (k *Kind) Put(o *object) {
	if reconcile.Ended(o) {
		k.Remove(o)
		return
	}
	k.policy.SetRole(convert(o))
}

// Remove implements store.Observer. It removes a deleted role from the policy.
func (k *Kind) Remove(o *object) { k.policy.DeleteRole(o.Namespace, o.Name, reconcile.Revision(o)) }

// convert converts a resource for package access.
func convert(o *object) access.CustomRole {
	role := access.CustomRole{
		Organization: o.Namespace, Name: o.Name, Description: o.Spec.Description, Revision: reconcile.Revision(o),
	}
	for _, permission := range o.Spec.Permissions {
		role.Permissions = append(role.Permissions, access.Permission(permission))
	}
	return role
}
