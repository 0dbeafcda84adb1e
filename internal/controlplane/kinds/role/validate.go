package role

import (
	"context"
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/internal/controlplane/caller"
	"freshet/internal/controlplane/validation"
	"freshet/internal/identity/access"
)

const (
	maxDescription = 1024
	// maxPermissions is larger than the number of permissions.
	maxPermissions = 1000
)

// MaxRoles is the maximum number of roles of an organization.
const MaxRoles = 1000

// ValidateName implements store.NameValidator. A name is a DNS subdomain and not that of a
// predefined role.
func (*Kind) ValidateName(name string, prefix bool) []string {
	if access.Reserved(name) && !prefix {
		return []string{"is the name of a predefined role; choose another one"}
	}
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// Validate implements store.Validator.
func (*Kind) Validate(_ context.Context, o *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.MaxLength(spec.Child("description"), o.Spec.Description, maxDescription)
	path := spec.Child("permissions")
	if n := len(o.Spec.Permissions); n > maxPermissions {
		return append(errs, field.TooMany(path, n, maxPermissions))
	}
	for i, permission := range o.Spec.Permissions {
		if !access.Permission(permission).Known() {
			errs = append(errs, field.Invalid(path.Index(i), permission,
				"is not a permission; permissions have the form SERVICE.RESOURCE.VERB, such as "+
					"messaging.topics.produce, and ClusterRole org-admin contains all of them"))
		}
	}
	return append(errs, validation.Unique(path, o.Spec.Permissions)...)
}

// Admit implements store.Admitter. It rejects a role with permissions that the caller does not
// have, and roles beyond MaxRoles.
func (k *Kind) Admit(ctx context.Context, o, old *object) error {
	principal := caller.Principal(ctx)
	if principal == nil || (old != nil && slices.Equal(o.Spec.Permissions, old.Spec.Permissions)) {
		return nil // a change of the description grants nothing
	}
	if n := k.policy.CountRoles(o.Namespace); old == nil && n >= MaxRoles {
		return fmt.Errorf("exceeded quota: organization %s has %d roles, limited to %d; "+
			"delete roles that are not needed", o.Namespace, n, MaxRoles)
	}
	return k.policy.MayDefine(principal, convert(o))
}
