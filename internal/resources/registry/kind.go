// Package registry stores every kind of the resource API with one generic
// strategy and one generic store.
//
// A kind brings a Kind value from its own folder: constructors, what it fills
// in, what it refuses, its fields and its table columns. Everything else
// (generation, status apart from spec, names, graceful deletion, the answers to
// odd input) is decided here once for all of them. Rules shared by several
// kinds live in ../validation, tables in ../printers.
package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/internal/access"
	"freshet/internal/resources/printers"
)

// Object is what every kind's pointer type is.
type Object interface {
	runtime.Object
	metav1.Object
}

// Access is who may write a kind through the API.
type Access uint8

const (
	// ReadWrite kinds belong to users.
	ReadWrite Access = iota
	// ReadOnly kinds come from the service itself; only it writes them.
	ReadOnly
)

// Observer is told of writes: after they are durable and before the call
// answers. What it does must not fail and must not take long.
type Observer[T Object] struct {
	// Expected: a write is about to happen, and may still come to nothing. It is
	// for what has to be in force before anybody can read of it; the others run
	// when readers and watchers may know already.
	Expected func(obj T)
	Created  func(obj T)
	Updated  func(obj T)
	// Deleting: a delete call was accepted, and finalizers hold the object.
	Deleting func(obj T)
	Deleted  func(obj T)
}

// Kind describes one resource kind to the generic store. The functions take
// the concrete type; nil ones do nothing.
type Kind[T Object] struct {
	Kind       string
	Plural     string
	Singular   string
	ShortNames []string
	Cluster    bool // cluster-scoped instead of namespaced
	Access     Access
	Finalizer  string // put on at birth, taken off by the kind's controller
	Owner      string // kind of the owner that the service gives the object, if it does
	NamePrefix string // when set, an object without a name gets this and some random letters

	New     func() T
	NewList func() runtime.Object

	// Default fills in what the user left out and needs no other resource;
	// it runs on everything that is decoded.
	Default func(obj T)
	// PrepareCreate fills in what the service decides at birth.
	PrepareCreate func(ctx context.Context, obj T)
	// PrepareUpdate carries over what a user may not change and the service keeps.
	PrepareUpdate func(ctx context.Context, obj, old T)
	// Validate checks an object as it stands.
	Validate func(ctx context.Context, obj T) field.ErrorList
	// ValidateCreate checks what matters at birth only.
	ValidateCreate func(ctx context.Context, obj T) field.ErrorList
	// ValidateUpdate checks a change: immutable fields and one-way doors.
	ValidateUpdate func(ctx context.Context, obj, old T) field.ErrorList
	// ValidateDelete may refuse a deletion.
	ValidateDelete func(ctx context.Context, obj T, options *metav1.DeleteOptions) error
	// ValidateName checks metadata.name; DNS subdomain when nil.
	ValidateName func(name string, prefix bool) []string

	// Admit has the last word on a creation or update that is otherwise valid:
	// its error is answered with 403. old is nil at creation.
	Admit func(ctx context.Context, obj, old T) error

	// Scope says where an object lies, for permissions; its organization when nil.
	Scope func(obj T) access.Scope

	// Spec and Status return pointers into obj.
	Spec   func(obj T) any
	Status func(obj T) any
	// Fields are the selectable fields besides metadata.name and metadata.namespace.
	Fields func(obj T) fields.Set
	// Columns between NAME and AGE.
	Columns []printers.Column

	Observer[T]

	// Finish runs on a valid object just before it is stored.
	Finish func(obj T)
	// Redact returns what the caller of ctx may see of an object: obj itself, or
	// a copy with less in it. It never changes obj, which may be shared.
	Redact func(ctx context.Context, obj T) T
	// Reveal adds to the answer of a create call what is never stored.
	Reveal func(ctx context.Context, obj T)
}
