// Package apikey describes the kind APIKey to the resource API. How a token is
// made and encrypted is the business of identity; controllers/apikey issues and
// expires keys.
package apikey

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/access"
	"freshet/internal/identity"
	"freshet/internal/resources/printers"
	"freshet/internal/resources/registry"
	"freshet/internal/resources/validation"
)

// Finalizer holds a key until it is dead on every surface.
const Finalizer = "apikey.finalizers.cloud.vendor.io"

const (
	maxDescription = 1024
	maxMetadata    = 32
	maxKeyText     = 16 << 10
)

type object = v1alpha1.APIKey

// Issuing is what identity does for a key while it is written.
type Issuing struct {
	// CheckEncryptionKey says what is wrong with a public key, at path.
	CheckEncryptionKey func(path *field.Path, key *v1alpha1.EncryptionKey) field.ErrorList
	// CheckAccount refuses a key that cannot be issued at once and would have
	// to be: one without an encryption key for an unknown account.
	CheckAccount func(ctx context.Context, o *object) field.ErrorList
	// MayHold says why the caller may not hold a key of the account, or of one
	// that is yet to come; nil when they may.
	MayHold func(ctx context.Context, o *object) error
	// Adopt links a new key to its account.
	Adopt func(ctx context.Context, o *object)
	// Issue makes the token of a new key, when its account exists.
	Issue func(o *object)
	// Revoke marks a key revoked.
	Revoke func(o *object)
	// Reveal puts the plain token of a key without an encryption key into the
	// answer of the create call.
	Reveal func(ctx context.Context, o *object)
}

// Definition describes the kind.
func Definition(issuing Issuing, observer registry.Observer[*object]) registry.Definition {
	return registry.Define(registry.Kind[*object]{
		Kind: "APIKey", Plural: "apikeys", Singular: "apikey",
		ShortNames:    []string{"ak"},
		Finalizer:     Finalizer,
		Owner:         "ServiceAccount",
		New:           func() *object { return &object{} },
		NewList:       func() runtime.Object { return &v1alpha1.APIKeyList{} },
		Spec:          func(o *object) any { return &o.Spec },
		Status:        func(o *object) any { return &o.Status },
		PrepareCreate: issuing.Adopt,
		PrepareUpdate: func(_ context.Context, o, old *object) {
			if o.Spec.Revoke && !old.Spec.Revoke {
				issuing.Revoke(o)
			}
		},
		Validate: func(_ context.Context, o *object) field.ErrorList { return validate(o, issuing) },
		ValidateCreate: func(ctx context.Context, o *object) field.ErrorList {
			return validateCreate(ctx, o, issuing)
		},
		ValidateUpdate: validateUpdate,
		Admit: func(ctx context.Context, o, old *object) error {
			if old != nil || issuing.MayHold == nil {
				return nil
			}
			return issuing.MayHold(ctx, o)
		},
		Scope: func(o *object) access.Scope {
			return access.Scope{
				Organization: o.Namespace, Instance: o.Spec.InstanceName,
				ServiceAccount: o.Spec.ServiceAccountName, APIKey: o.Name,
			}
		},
		Finish: func(o *object) {
			if o.Status.IssuedAt == nil {
				issuing.Issue(o)
			}
			observe(o)
		},
		Reveal: issuing.Reveal,
		Fields: func(o *object) fields.Set {
			return fields.Set{
				"spec.instanceName":       o.Spec.InstanceName,
				"spec.serviceAccountName": o.Spec.ServiceAccountName,
			}
		},
		Columns:  columns(),
		Observer: observer,
	})
}

// observe says that the conditions are about the spec as it is now: what a
// change of a key does, it does in the same write.
func observe(o *object) {
	o.Status.Conditions = slices.Clone(o.Status.Conditions)
	for i := range o.Status.Conditions {
		o.Status.Conditions[i].ObservedGeneration = o.Generation
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

// State sums up a key's three conditions as one.
func State(o *v1alpha1.APIKey) (ready, reason string) {
	ready, reason = "False", "Pending"
	for _, c := range o.Status.Conditions {
		switch {
		case c.Type == v1alpha1.ConditionIssued:
			ready, reason = string(c.Status), c.Reason
		case (c.Type == v1alpha1.ConditionExpired || c.Type == v1alpha1.ConditionRevoked) && c.Status == "True":
			return "False", c.Reason
		}
	}
	return ready, reason
}

func validate(o *object, issuing Issuing) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateAccount(o)
	errs = append(errs, validation.Name(spec.Child("instanceName"), o.Spec.InstanceName)...)
	errs = append(errs, validation.MaxLength(spec.Child("description"), o.Spec.Description, maxDescription)...)
	errs = append(errs, validateMetadata(spec.Child("customizedMetadata"), o.Spec.CustomizedMetadata)...)
	if key := o.Spec.EncryptionKey; key != nil {
		p := spec.Child("encryptionKey")
		errs = append(errs, validation.MaxLength(p.Child("pem"), key.PEM, maxKeyText)...)
		errs = append(errs, validation.MaxLength(p.Child("jwk"), key.JWK, maxKeyText)...)
		switch {
		case key.PEM == "" && key.JWK == "":
			errs = append(errs, field.Required(p, "give the public key as pem or as jwk"))
		case key.PEM != "" && key.JWK != "":
			errs = append(errs, field.Invalid(p, field.OmitValueType{}, "give either pem or jwk, not both"))
		case len(errs) == 0:
			errs = append(errs, issuing.CheckEncryptionKey(p, key)...)
		}
	}
	return errs
}

// validateMetadata bounds what is going to travel in every token.
func validateMetadata(path *field.Path, metadata map[string]string) field.ErrorList {
	if n := len(metadata); n > maxMetadata {
		return field.ErrorList{field.TooMany(path, n, maxMetadata)}
	}
	size := 0
	for name, value := range metadata {
		size += len(name) + len(value)
	}
	if size > identity.MaxMetadata {
		return field.ErrorList{field.TooLong(path, "", identity.MaxMetadata)}
	}
	return nil
}

func validateAccount(o *object) field.ErrorList {
	path := field.NewPath("spec", "serviceAccountName")
	return append(validation.Required(path, o.Spec.ServiceAccountName), validation.Name(path, o.Spec.ServiceAccountName)...)
}

func validateCreate(ctx context.Context, o *object, issuing Issuing) field.ErrorList {
	errs := validateExpiration(o)
	if len(validateAccount(o)) > 0 {
		return errs // what cannot be a name is refused already
	}
	return append(errs, issuing.CheckAccount(ctx, o)...)
}

func validateExpiration(o *object) field.ErrorList {
	t := o.Spec.ExpirationTime
	if t == nil || t.After(time.Now()) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "expirationTime"), t.UTC().Format(time.RFC3339), "must be in the future")}
}

// validateUpdate lets only description, metadata and revoke change, and revoke
// only to true.
func validateUpdate(_ context.Context, o, old *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Immutable(spec.Child("instanceName"), o.Spec.InstanceName, old.Spec.InstanceName)
	errs = append(errs, validation.Immutable(spec.Child("serviceAccountName"), o.Spec.ServiceAccountName, old.Spec.ServiceAccountName)...)
	errs = append(errs, validation.Immutable(spec.Child("expirationTime"), o.Spec.ExpirationTime, old.Spec.ExpirationTime)...)
	errs = append(errs, validation.Immutable(spec.Child("encryptionKey"), o.Spec.EncryptionKey, old.Spec.EncryptionKey)...)
	errs = append(errs, validation.Immutable(spec.Child("customizedMetadata"), o.Spec.CustomizedMetadata, old.Spec.CustomizedMetadata)...)
	if old.Spec.Revoke && !o.Spec.Revoke {
		errs = append(errs, field.Invalid(spec.Child("revoke"), false, "a revoked key cannot be brought back; create a new one"))
	}
	return errs
}
