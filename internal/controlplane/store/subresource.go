package store

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/common"

	"freshet/api/v1alpha1"
)

// SubresourceInfo describes a subresource of a kind.
type SubresourceInfo struct {
	Name         string
	OptionalBody bool // a call needs no body, and an unknown field in a body is always rejected
	CorePath     bool // also served at the path of the resource of the same name in core/v1
	BySelf       bool // an account may call it on itself without a role; the subresource decides
}

// Subresource is a subresource that is created on a named object and not stored, such as a token.
// Package ../subresource implements its calls.
type Subresource interface {
	Info() SubresourceInfo
	// AddToScheme registers the type of the body.
	AddToScheme(scheme *runtime.Scheme) error
	// Definitions describes the body for the OpenAPI documents.
	Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition
	// Open creates the storage; main reads the objects of the kind's resource and status writes their
	// status.
	Open(resource schema.GroupResource, main rest.Getter, status rest.Updater) rest.Storage
}

// Subresources implements Definition.
func (r *Resource[T]) Subresources() []Subresource {
	if r.kind.Extended == nil {
		return nil
	}
	return r.kind.Extended.Subresources()
}

// openSubresources creates the storages of the kind's subresources, by name.
func (r *Resource[T]) openSubresources(main rest.Getter, status rest.Updater) map[string]rest.Storage {
	resource := v1alpha1.Resource(r.kind.info.Plural)
	opened := map[string]rest.Storage{}
	for _, subresource := range r.Subresources() {
		opened[subresource.Info().Name] = subresource.Open(resource, main, status)
	}
	return opened
}
