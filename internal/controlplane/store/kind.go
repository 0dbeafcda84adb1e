// Package store stores every kind of the resource API with one generic strategy and one generic
// REST storage.
//
// A kind is defined in its own folder under internal/controlplane/kinds and is passed to Define as
// a value that implements Kind and any of the optional interfaces below. This package implements
// everything that all kinds share: generation, the separation of status and spec, names, graceful
// deletion, per-object authorization, and clear responses to invalid input. Validation rules shared
// by several kinds are in ../validation, table output in ../printers, storage limits in ../budget,
// the calls of further subresources in ../subresource.
// ../apiserver implements Authorizer.
//
// Locks:
//
//	objectLocks.mu    protects the map of object locks and the user count of each
//	objectLock.token  a semaphore channel of capacity 1 per object; serializes the updates and
//	                  deletions of that object in this process
//
// Order: a call acquires the token of its object without holding mu, and holds at most one token.
// join and leave take mu for the map access only. The kind's validators and observers run with the
// token held, so they must not change the same object through this store.
package store

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"freshet/internal/controlplane/printers"
	"freshet/internal/identity/access"
	"freshet/internal/ops/quota"
)

// Object is implemented by the pointer type of every kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// Info describes a kind: its names and how it is stored.
type Info struct {
	Kind          string
	Plural        string
	Singular      string
	ShortNames    []string
	ClusterScoped bool   // has no namespace; every caller may read it
	ReadOnly      bool   // written by the service only
	Secret        bool   // contains a value that is encrypted at rest
	Strict        bool   // unknown fields are always rejected, whatever fieldValidation the caller sets
	Finalizer     string // added at creation, removed by the kind's reconciler
	// DeletingMessage is the message of the condition Ready from the write that sets the deletion timestamp, if
	// finalizers hold the object. Without it a DeletionMarker may write the status.
	DeletingMessage string
	// DeletesImmediately: the reconciler has nothing to tear down, so a delete call removes the finalizer
	// itself, unless other finalizers hold the object.
	DeletesImmediately bool
	Owner              string // kind of the owner reference that the service sets, if it sets one
	OwnerField         string // the selectable field that names that owner
	NamePrefix         string // if set, an object without a name gets this prefix and random letters
	// OwnedByAccount: an account may read its own objects without a role, so the permission to get an
	// object is decided with the object.
	OwnedByAccount bool
	// LoadedLast: at start, the Observer gets the objects after those of the other kinds.
	LoadedLast bool
	Columns    []printers.Column
}

// Kind is one kind of resource. Optional behavior is added by implementing the interfaces below;
// Define detects them.
type Kind[T Object] interface {
	Info() Info
	New() T
	NewList() runtime.Object
	// Spec and Status return pointers into obj.
	Spec(obj T) any
	Status(obj T) any
}

// Type implements all of Kind but Info for objects *O, which have the fields Spec and Status, and lists *L. Kinds
// embed it.
type Type[O, L any] struct{}

// New implements Kind.
func (Type[O, L]) New() *O { return new(O) }

// NewList implements Kind.
func (Type[O, L]) NewList() runtime.Object { return any(new(L)).(runtime.Object) }

// Spec implements Kind.
func (Type[O, L]) Spec(obj *O) any {
	return reflect.ValueOf(obj).Elem().FieldByName("Spec").Addr().Interface()
}

// Status implements Kind.
func (Type[O, L]) Status(obj *O) any {
	return reflect.ValueOf(obj).Elem().FieldByName("Status").Addr().Interface()
}

// Optional interfaces of a kind.
type (
	// Defaulter sets defaults that depend on no other resource; it runs on every decoded object.
	Defaulter[T Object] interface{ Default(obj T) }

	// Preparer completes an object before it is validated.
	Preparer[T Object] interface {
		// PrepareCreate sets the fields that the service decides at creation.
		PrepareCreate(ctx context.Context, obj T)
		// PrepareUpdate carries over the fields that a user may not change.
		PrepareUpdate(ctx context.Context, obj, old T)
	}

	// StatusPreparer runs on a write of the status, after validation: it restores the fields that
	// callers may not write there.
	StatusPreparer[T Object] interface {
		PrepareStatus(ctx context.Context, obj, old T)
	}

	// Describer derives status from the object's own metadata and spec in the same write, so that
	// no reconciler has to write it later. It runs at creation and when the spec changes, before
	// validation, and not for an object that is being deleted. The list of conditions may be shared
	// with the stored object: replace it by a copy.
	Describer[T Object] interface{ Describe(obj T) }

	// Warner returns warnings about a valid object, at creation and when it is changed; old is nil
	// at creation. Clients show the warnings to their users.
	Warner[T Object] interface {
		Warnings(ctx context.Context, obj, old T) []string
	}

	// Validator checks an object.
	Validator[T Object] interface {
		// Validate checks an object independently of earlier versions.
		Validate(ctx context.Context, obj T) field.ErrorList
	}

	// CreateValidator checks what matters at creation only.
	CreateValidator[T Object] interface {
		ValidateCreate(ctx context.Context, obj T) field.ErrorList
	}

	// UpdateValidator checks a change: immutable fields and irreversible changes.
	UpdateValidator[T Object] interface {
		ValidateUpdate(ctx context.Context, obj, old T) field.ErrorList
	}

	// DeleteValidator may reject a deletion.
	DeleteValidator[T Object] interface {
		ValidateDelete(ctx context.Context, obj T, options *metav1.DeleteOptions) error
	}

	// DeletionMarker records in the status of an object that it is being deleted, for a kind that needs
	// more than Info.DeletingMessage.
	DeletionMarker[T Object] interface{ MarkDeleting(obj T) }

	// NameValidator checks metadata.name; without it names are DNS subdomains.
	NameValidator interface {
		ValidateName(name string, prefix bool) []string
	}

	// Admitter is called last for a creation or update that is otherwise valid; its error is
	// returned as 403. old is nil at creation.
	Admitter[T Object] interface {
		Admit(ctx context.Context, obj, old T) error
	}

	// Limiter limits the number of objects.
	Limiter[T Object] interface {
		// Quota returns the quota that limits them.
		Quota() quota.Resource
		// Reserve is called when a creation is otherwise valid; done is called when the object has
		// been stored or the creation has failed. An error of kind Exhausted is returned as 403.
		Reserve(ctx context.Context, obj T) (done func(), err error)
	}

	// Revoker reports whether a change removes rights. Such a change is stored even if the store
	// has no space for other changes.
	Revoker[T Object] interface{ Revokes(obj, old T) bool }

	// Finisher completes an object that is valid, authorized and admitted, just before it is stored:
	// it issues what the object contains.
	Finisher[T Object] interface{ Finish(obj T) }

	// DryRunFinisher completes the object of a dry run instead of the Finisher: it issues nothing.
	DryRunFinisher[T Object] interface{ FinishDryRun(obj T) }

	// Locator returns the scope of an object for permissions; without it the scope is the object's
	// organization.
	Locator[T Object] interface{ Scope(obj T) access.Scope }

	// Selectable returns the fields that field selectors may use, in addition to metadata.name and
	// metadata.namespace.
	Selectable[T Object] interface{ Fields(obj T) fields.Set }

	// Redacter returns the parts of an object that the caller of ctx may see: obj itself, or a copy
	// with fewer fields. It never changes obj, which may be shared.
	Redacter[T Object] interface {
		Redact(ctx context.Context, obj T) T
	}

	// Revealer adds values to the response of a create call that are never stored.
	Revealer[T Object] interface{ Reveal(obj T) }

	// Expecter is called before a write, which may still fail. Use it for effects that must be in
	// force before any client can read the object: an Observer runs when readers and watchers may
	// have seen it already.
	Expecter[T Object] interface{ Expect(obj T) }

	// Observer is called after a write is durable and before the call returns. Its methods must not
	// fail and must be fast.
	Observer[T Object] interface {
		// Put is called when the object was created or changed.
		Put(obj T)
		// Remove is called when the object is deleted, or when a delete call was accepted and
		// finalizers hold the object. It may be called more than once.
		Remove(obj T)
	}

	// ApplyRewriter changes the decoded body of an apply before the API machinery gets it, and reports
	// whether it has. stored returns the stored object, or nil.
	ApplyRewriter[T Object] interface {
		RewriteApply(body map[string]any, stored func() T) bool
	}

	// Extended is a kind with further subresources.
	Extended interface{ Subresources() []Subresource }
)

// kind is a Kind with its roles.
type kind[T Object] struct {
	Kind[T]
	roles[T]
	info         Info
	emptyObjects bool                   // the type contains objects without fields, see unknownFields
	onStored     func(obj T, gone bool) // called after the Observer; may be nil
}

// roles is the table of the optional interfaces of a kind; those that the kind does not implement
// are nil. The fields are exported for package reflect only.
type roles[T Object] struct {
	Defaulter       Defaulter[T]
	Preparer        Preparer[T]
	StatusPreparer  StatusPreparer[T]
	Describer       Describer[T]
	Warner          Warner[T]
	Validator       Validator[T]
	CreateValidator CreateValidator[T]
	UpdateValidator UpdateValidator[T]
	DeleteValidator DeleteValidator[T]
	DeletionMarker  DeletionMarker[T]
	NameValidator   NameValidator
	Admitter        Admitter[T]
	Limiter         Limiter[T]
	Revoker         Revoker[T]
	Finisher        Finisher[T]
	DryRunFinisher  DryRunFinisher[T]
	Locator         Locator[T]
	Selectable      Selectable[T]
	Redacter        Redacter[T]
	Revealer        Revealer[T]
	Expecter        Expecter[T]
	Observer        Observer[T]
	ApplyRewriter   ApplyRewriter[T]
	Extended        Extended
}

// rolesOf fills the table: a kind has the roles whose interfaces it implements.
func rolesOf[T Object](of Kind[T]) (found roles[T]) {
	value, table := reflect.ValueOf(of), reflect.ValueOf(&found).Elem()
	for i := range table.NumField() {
		if role := table.Field(i); value.Type().Implements(role.Type()) {
			role.Set(value)
		}
	}
	return found
}

func newKind[T Object](of Kind[T]) *kind[T] {
	return &kind[T]{
		Kind: of, roles: rolesOf(of), info: of.Info(),
		emptyObjects: hasEmptyObjects(reflect.TypeFor[T](), map[reflect.Type]bool{}),
	}
}
