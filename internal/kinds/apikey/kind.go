package apikey

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/identity"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/store"
)

// Finalizer holds a key until it is dead on every surface.
const Finalizer = "apikey.finalizers.cloud.vendor.io"

type object = v1alpha1.APIKey

// Authorizer decides who may hold keys of which account; access.Policy is one.
type Authorizer interface {
	MayActAs(who *identity.Principal, organization, account string, admin bool) error
	MayCreateAdmin(who *identity.Principal, organization string) error
}

// Kind is the kind APIKey.
type Kind struct {
	issuer     *identity.Issuer
	directory  *identity.Directory
	authorizer Authorizer
	log        *slog.Logger

	// plain holds tokens between the store's write and the answer that shows
	// them, by the key's UID; they are never stored.
	plain sync.Map
}

var (
	_ store.Preparer[*object]        = (*Kind)(nil)
	_ store.Validator[*object]       = (*Kind)(nil)
	_ store.CreateValidator[*object] = (*Kind)(nil)
	_ store.UpdateValidator[*object] = (*Kind)(nil)
	_ store.Admitter[*object]        = (*Kind)(nil)
	_ store.Finisher[*object]        = (*Kind)(nil)
	_ store.Locator[*object]         = (*Kind)(nil)
	_ store.Selectable[*object]      = (*Kind)(nil)
	_ store.Revealer[*object]        = (*Kind)(nil)
	_ store.Expecter[*object]        = (*Kind)(nil)
	_ store.Observer[*object]        = (*Kind)(nil)
)

// New makes the kind: keys are issued by the issuer, for accounts of the
// directory, which is told of them.
func New(issuer *identity.Issuer, directory *identity.Directory, authorizer Authorizer, log *slog.Logger) *Kind {
	return &Kind{issuer: issuer, directory: directory, authorizer: authorizer, log: log}
}

// Info implements store.Kind.
func (*Kind) Info() store.Info {
	return store.Info{
		Kind: "APIKey", Plural: "apikeys", Singular: "apikey",
		ShortNames: []string{"ak"},
		Secret:     true,
		Finalizer:  Finalizer,
		Owner:      "ServiceAccount",
		OwnerField: "spec.serviceAccountName",
		Columns:    columns(),
	}
}

// New implements store.Kind.
func (*Kind) New() *object { return &object{} }

// NewList implements store.Kind.
func (*Kind) NewList() runtime.Object { return &v1alpha1.APIKeyList{} }

// Spec implements store.Kind.
func (*Kind) Spec(o *object) any { return &o.Spec }

// Status implements store.Kind.
func (*Kind) Status(o *object) any { return &o.Status }

// Scope implements store.Locator.
func (*Kind) Scope(o *object) access.Scope {
	return access.Scope{
		Organization: o.Namespace, Instance: o.Spec.InstanceName,
		ServiceAccount: o.Spec.ServiceAccountName, APIKey: o.Name,
	}
}

// Fields implements store.Selectable.
func (*Kind) Fields(o *object) fields.Set {
	return fields.Set{
		"spec.instanceName":       o.Spec.InstanceName,
		"spec.serviceAccountName": o.Spec.ServiceAccountName,
	}
}

// PrepareCreate implements store.Preparer: the account becomes the key's owner.
func (k *Kind) PrepareCreate(_ context.Context, key *object) { k.adopt(key) }

// PrepareUpdate implements store.Preparer: a change that revokes says when.
func (*Kind) PrepareUpdate(_ context.Context, key, old *object) {
	if key.Spec.Revoke && !old.Spec.Revoke {
		revoke(key)
	}
}

// Finish implements store.Finisher: a key that has no token yet gets it in the
// same write. The conditions are about the spec as it is now: what a change of
// a key does, it does at once.
func (k *Kind) Finish(key *object) {
	if key.Status.IssuedAt == nil {
		k.issue(key)
	}
	key.Status.Conditions = slices.Clone(key.Status.Conditions)
	for i := range key.Status.Conditions {
		key.Status.Conditions[i].ObservedGeneration = key.Generation
	}
}

func columns() []printers.Column {
	return []printers.Column{
		{
			Name: "Ready", Description: "Whether the key can be used.",
			Value: func(o runtime.Object) any { ready, _ := State(o.(*object)); return ready },
		},
		{
			Name: "Reason", Description: "Why it can, or cannot.",
			Value: func(o runtime.Object) any { _, reason := State(o.(*object)); return reason },
		},
		{
			Name: "Account", Description: "The service account the key belongs to.",
			Value: func(o runtime.Object) any { return o.(*object).Spec.ServiceAccountName },
		},
		{
			Name: "Instance", Description: "The instance the key is good for; * for all.",
			Value: func(o runtime.Object) any {
				if name := o.(*object).Spec.InstanceName; name != "" {
					return name
				}
				return "*"
			},
		},
		{
			Name: "Expires", Description: "When the key ends.", Wide: true,
			Value: func(o runtime.Object) any {
				if t := o.(*object).Spec.ExpirationTime; t != nil {
					return t.UTC().Format(time.RFC3339)
				}
				return "never"
			},
		},
	}
}
