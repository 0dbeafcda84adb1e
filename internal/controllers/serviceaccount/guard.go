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

// Rules decides who may do what through an account; access.Policy is one.
type Rules interface {
	Authorize(ctx context.Context, who *identity.Principal, permission access.Permission, scope access.Scope) (access.Decision, error)
	MayCreateAdmin(who *identity.Principal, organization string) error
	MayActAs(who *identity.Principal, organization, account string, admin bool) error
}

// Guard keeps anyone from becoming more than they are by way of an account:
// only administrators make administrators, and only those who could make the
// account may read its secret.
func (f Feed) Guard(rules Rules) kind.Guard {
	return kind.Guard{
		MayCreate: func(ctx context.Context, sa *v1alpha1.ServiceAccount) *field.Error {
			return f.mayCreate(ctx, sa, rules)
		},
		Redact: func(ctx context.Context, sa *v1alpha1.ServiceAccount) *v1alpha1.ServiceAccount {
			if sa.Status.PrivateKeyData == "" || f.maySee(ctx, sa, rules) {
				return sa
			}
			hidden := sa.DeepCopy()
			hidden.Status.PrivateKeyData = ""
			return hidden
		},
	}
}

func (f Feed) mayCreate(ctx context.Context, sa *v1alpha1.ServiceAccount, rules Rules) *field.Error {
	caller := resources.PrincipalFrom(ctx)
	if caller == nil || caller.System {
		return nil
	}
	if f.System(sa.Namespace, sa.Name) {
		return field.Forbidden(field.NewPath("metadata", "name"), "this name is the system administrator's")
	}
	if !kind.IsAdmin(sa) {
		return nil
	}
	if err := rules.MayCreateAdmin(caller, sa.Namespace); err != nil {
		return field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationServiceAccountRole), err.Error())
	}
	return nil
}

// maySee lets those read an account's secret who may read secrets at all, and
// who gain nothing by it.
func (f Feed) maySee(ctx context.Context, sa *v1alpha1.ServiceAccount, rules Rules) bool {
	caller := resources.PrincipalFrom(ctx)
	if caller == nil || caller.System {
		return true
	}
	if f.System(sa.Namespace, sa.Name) || rules.MayActAs(caller, sa.Namespace, sa.Name, kind.IsAdmin(sa)) != nil {
		return false
	}
	_, err := rules.Authorize(ctx, caller, access.ReadCredentials,
		access.Scope{Organization: sa.Namespace, ServiceAccount: sa.Name})
	return err == nil
}
