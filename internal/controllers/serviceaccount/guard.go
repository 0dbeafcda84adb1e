package serviceaccount

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/identity"
	"freshet/internal/resources"
	kind "freshet/internal/resources/registry/serviceaccount"
)

// readCredentials is what it takes to see the secret of an account that is not
// one's own.
const readCredentials access.Permission = "cloud.credentials.describe"

// Authorizer decides who may read credentials.
type Authorizer interface {
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission, scope access.Scope) (access.Decision, error)
}

// Guard keeps anyone from becoming more than they are by way of an account:
// only administrators make administrators, and only those who could make the
// account may read its secret.
func (f Feed) Guard(authorizer Authorizer) kind.Guard {
	return kind.Guard{
		MayCreate: f.mayCreate,
		Redact: func(ctx context.Context, sa *v1alpha1.ServiceAccount) *v1alpha1.ServiceAccount {
			if sa.Status.PrivateKeyData == "" || f.maySee(ctx, sa, authorizer) {
				return sa
			}
			hidden := sa.DeepCopy()
			hidden.Status.PrivateKeyData = ""
			return hidden
		},
	}
}

func (f Feed) mayCreate(ctx context.Context, sa *v1alpha1.ServiceAccount) *field.Error {
	caller := resources.PrincipalFrom(ctx)
	if caller == nil || caller.System {
		return nil
	}
	if f.System(sa.Namespace, sa.Name) {
		return field.Forbidden(field.NewPath("metadata", "name"), "this name is the system administrator's")
	}
	if kind.IsAdmin(sa) && (!caller.Admin || caller.Organization != sa.Namespace) {
		return field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationServiceAccountRole),
			"only an administrator of the organization may make another")
	}
	return nil
}

func (f Feed) maySee(ctx context.Context, sa *v1alpha1.ServiceAccount, authorizer Authorizer) bool {
	caller := resources.PrincipalFrom(ctx)
	switch {
	case caller == nil || caller.System:
		return true
	case caller.ServiceAccount == sa.Name && caller.Organization == sa.Namespace && caller.KeyID == "":
		return true
	case f.System(sa.Namespace, sa.Name):
		return false
	case kind.IsAdmin(sa):
		return caller.Admin && caller.Organization == sa.Namespace
	}
	_, err := authorizer.Authorize(ctx, caller, readCredentials,
		access.Scope{Organization: sa.Namespace, ServiceAccount: sa.Name})
	return err == nil
}
