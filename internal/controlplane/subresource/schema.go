package subresource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"freshet/api/v1alpha1"
	"freshet/internal/identity"
	"freshet/internal/identity/access"
)

// Authorizer decides about the permissions of callers; access.Policy implements it. Handlers add
// what they need of it.
type Authorizer interface {
	Authorize(ctx context.Context, principal *identity.Principal, permission access.Permission,
		scope access.Scope) (access.Decision, error)
}

// AccountAuthorizer also decides which callers may act as an account.
type AccountAuthorizer interface {
	Authorizer
	MayActAs(principal *identity.Principal, organization, account string, admin bool) error
}

// AddToScheme registers the type of a body with the kinds that are stored, and as its own internal
// version.
func AddToScheme(scheme *runtime.Scheme, body runtime.Object) error {
	scheme.AddKnownTypes(v1alpha1.SchemeGroupVersion, body)
	internal := v1alpha1.SchemeGroupVersion
	internal.Version = runtime.APIVersionInternal
	scheme.AddKnownTypes(internal, body)
	return nil
}

// Object describes an object in the OpenAPI documents.
func Object(description string, properties map[string]spec.Schema) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"object"}, Description: description,
		Properties: properties,
	}}
}

// Text describes a text.
func Text(description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}, Description: description}}
}

// Integer describes a whole number of 64 bits.
func Integer(description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{
		Type: []string{"integer"}, Format: "int64",
		Description: description,
	}}
}

// Reference refers to another description.
func Reference(ref common.ReferenceCallback, model string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(model)}}
}
