package serviceaccount

import (
	"context"
	"errors"

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
		MayCreate: func(ctx context.Context, sa *v1alpha1.ServiceAccount) error {
			return f.mayCreate(ctx, sa, rules)
		},
		MayDelete: f.mayDelete,
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

func (f Feed) mayCreate(ctx context.Context, sa *v1alpha1.ServiceAccount, rules Rules) error {
	caller := resources.PrincipalFrom(ctx)
	if caller == nil || caller.System {
		return nil
	}
	if f.System(sa.Namespace, sa.Name) {
		return errSystemAccount
	}
	if !kind.IsAdmin(sa) {
		return nil
	}
	return rules.MayCreateAdmin(caller, sa.Namespace)
}

var errSystemAccount = errors.New("it is the system administrator's account, for that one alone to make and delete")

// mayDelete keeps the administrators of one organization from ending the one
// who rules them all.
func (f Feed) mayDelete(ctx context.Context, sa *v1alpha1.ServiceAccount) error {
	caller := resources.PrincipalFrom(ctx)
	if caller == nil || caller.System || !f.System(sa.Namespace, sa.Name) {
		return nil
	}
	return errSystemAccount
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
