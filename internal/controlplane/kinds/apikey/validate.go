package apikey

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/validation"
	"freshet/internal/identity"
)

const (
	maxDescription = 1024
	maxMetadata    = 32
	maxKeyText     = 16 << 10
)

// Validate implements store.Validator.
func (*Kind) Validate(_ context.Context, o *object) field.ErrorList {
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
			errs = append(errs, field.Required(p, "set pem or jwk to the public key"))
		case key.PEM != "" && key.JWK != "":
			errs = append(errs, field.Invalid(p, field.OmitValueType{}, "set either pem or jwk, not both"))
		case len(errs) == 0:
			errs = append(errs, validateEncryptionKey(p, key)...)
		}
	}
	return errs
}

// validateMetadata limits the metadata, which every token contains.
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
	return append(validation.Required(path, o.Spec.ServiceAccountName),
		validation.Name(path, o.Spec.ServiceAccountName)...)
}

// ValidateCreate implements store.CreateValidator.
func (k *Kind) ValidateCreate(_ context.Context, o *object) field.ErrorList {
	errs := validateExpiration(o)
	if i, known := k.directory.Instance(o.Namespace, o.Spec.InstanceName); known && !i.APIKeys {
		errs = append(errs, field.Invalid(field.NewPath("spec", "instanceName"), o.Spec.InstanceName,
			notAccepted(o.Spec.InstanceName)))
	}
	if len(validateAccount(o)) > 0 {
		return errs // Validate rejects invalid names
	}
	return append(errs, k.validateIssuable(o)...)
}

func validateExpiration(o *object) field.ErrorList {
	t := o.Spec.ExpirationTime
	if t == nil || t.After(time.Now()) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "expirationTime"), t.UTC().Format(time.RFC3339),
		"must be in the future")}
}

// ValidateUpdate implements store.UpdateValidator. Only description and revoke can change, and
// revoke only to true.
func (*Kind) ValidateUpdate(_ context.Context, o, old *object) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validation.Immutable(spec.Child("instanceName"), o.Spec.InstanceName, old.Spec.InstanceName)
	errs = append(errs, validation.Immutable(spec.Child("serviceAccountName"), o.Spec.ServiceAccountName,
		old.Spec.ServiceAccountName)...)
	errs = append(errs, validation.Immutable(spec.Child("expirationTime"), o.Spec.ExpirationTime,
		old.Spec.ExpirationTime)...)
	errs = append(errs, validation.Immutable(spec.Child("encryptionKey"), o.Spec.EncryptionKey,
		old.Spec.EncryptionKey)...)
	errs = append(errs, validation.Immutable(spec.Child("customizedMetadata"), o.Spec.CustomizedMetadata,
		old.Spec.CustomizedMetadata)...)
	if old.Spec.Revoke && !o.Spec.Revoke {
		errs = append(errs, field.Invalid(spec.Child("revoke"), false,
			"a revoked key cannot be restored; create a new one"))
	}
	return errs
}

// validateEncryptionKey returns what is wrong with a public key.
func validateEncryptionKey(path *field.Path, key *v1alpha1.EncryptionKey) field.ErrorList {
	_, err := identity.ParseEncryptionKey(key.PEM, key.JWK)
	if err == nil {
		return nil
	}
	var wrong *identity.InputError
	if !errors.As(err, &wrong) {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	switch wrong.Input {
	case identity.InputPEM:
		path = path.Child("pem")
	case identity.InputJWK:
		path = path.Child("jwk")
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, wrong.Detail)}
}

// validateIssuable rejects a key that cannot be issued immediately but has to be: the plaintext
// token of a key without an encryption key is shown in the create response only.
func (k *Kind) validateIssuable(key *object) field.ErrorList {
	if key.Spec.EncryptionKey != nil {
		return nil
	}
	if _, ok := k.directory.Account(key.Namespace, key.Spec.ServiceAccountName); ok {
		return nil
	}
	return field.ErrorList{field.NotFound(field.NewPath("spec", "serviceAccountName"), key.Spec.ServiceAccountName)}
}
