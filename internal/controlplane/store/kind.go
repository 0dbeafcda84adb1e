// Package store keeps every kind of the resource API with one generic strategy
// and one generic store.
//
// A kind lives in its own folder under internal/controlplane/kinds and comes here as a value
// that implements Kind and those of the roles below that it plays. Everything
// else (generation, status apart from spec, names, graceful deletion, the
// answers to odd input) is decided here once for all of them. Rules shared by
// several kinds live in ../validation, tables in ../printers; who may do what
// to a single object is asked of an Authorizer, which ../ implements.
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
)

// Object is what every kind's pointer type is.
type Object interface {
	runtime.Object
	metav1.Object
}

// Info is what a kind is called, and how it is kept.
type Info struct {
	Kind          string
	Plural        string
	Singular      string
	ShortNames    []string
	ClusterScoped bool   // without a namespace; readable by everybody
	ReadOnly      bool   // comes with the service, which alone writes it
	Secret        bool   // holds something that is encrypted at rest
	Strict        bool   // unknown fields are always refused, whatever the caller says about them
	Finalizer     string // put on at creation, taken off by the kind's reconciler
	// nothing is taken down behind it: a delete call takes the finalizer off, unless others hold the object
	GoesAtOnce bool
	Owner      string // kind of the owner that the service gives the object, if it does
	OwnerField string // the selectable field that names that owner
	NamePrefix string // when set, an object without a name gets this and some random letters
	Columns    []printers.Column
}

// Kind is one kind of resource. What it decides for itself beyond this it says
// by implementing roles; Define finds them.
type Kind[T Object] interface {
	Info() Info
	New() T
	NewList() runtime.Object
	// Spec and Status return pointers into obj.
	Spec(obj T) any
	Status(obj T) any
}

// The roles a kind can play.
type (
	// Defaulter fills in what the user left out and needs no other resource; it
	// runs on everything that is decoded.
	Defaulter[T Object] interface{ Default(obj T) }

	// Preparer completes an object before it is validated.
	Preparer[T Object] interface {
		// PrepareCreate fills in what the service decides at creation.
		PrepareCreate(ctx context.Context, obj T)
		// PrepareUpdate carries over what a user may not change and the service keeps.
		PrepareUpdate(ctx context.Context, obj, old T)
	}

	// StatusPreparer has its say on a write of the status, behind validation: it
	// puts back what nobody may write there.
	StatusPreparer[T Object] interface {
		PrepareStatus(ctx context.Context, obj, old T)
	}

	// Describer says in status what follows from an object's own metadata and spec,
	// in the write that makes it so: no reconciler has to write it behind. It runs
	// at creation and when the spec changes, in front of validation, and not for an
	// object that is being deleted. The list of conditions may be shared with the
	// stored object: write a copy.
	Describer[T Object] interface{ Describe(obj T) }

	// Warner says what is odd about a valid object, at creation and when it is
	// changed; old is nil at creation. Clients show it to their users.
	Warner[T Object] interface {
		Warnings(ctx context.Context, obj, old T) []string
	}

	// Validator says what is wrong with an object.
	Validator[T Object] interface {
		// Validate checks an object as it stands.
		Validate(ctx context.Context, obj T) field.ErrorList
	}

	// CreateValidator checks what matters at creation only.
	CreateValidator[T Object] interface {
		ValidateCreate(ctx context.Context, obj T) field.ErrorList
	}

	// UpdateValidator checks a change: immutable fields and one-way doors.
	UpdateValidator[T Object] interface {
		ValidateUpdate(ctx context.Context, obj, old T) field.ErrorList
	}

	// DeleteValidator may refuse a deletion.
	DeleteValidator[T Object] interface {
		ValidateDelete(ctx context.Context, obj T, options *metav1.DeleteOptions) error
	}

	// DeletionMarker says in the status of an object that it is being deleted. It
	// runs in the write that marks it so, when finalizers hold it.
	DeletionMarker[T Object] interface{ MarkDeleting(obj T) }

	// NameValidator checks metadata.name; without it names are DNS subdomains.
	NameValidator interface {
		ValidateName(name string, prefix bool) []string
	}

	// Admitter has the last word on a creation or update that is otherwise
	// valid: its error is answered with 403. old is nil at creation.
	Admitter[T Object] interface {
		Admit(ctx context.Context, obj, old T) error
	}

	// Limiter has room for one more object, or not: it is asked when a creation is
	// otherwise valid. done is called when the object is stored, or will not be.
	// An error of kind Exhausted is answered with 403.
	Limiter[T Object] interface {
		Reserve(ctx context.Context, obj T) (done func(), err error)
	}

	// Revoker says of a change that it takes rights away and nothing else matters
	// as much: it is stored also when there is no room for other changes.
	Revoker[T Object] interface{ Revokes(obj, old T) bool }

	// Finisher completes a valid object just before it is stored.
	Finisher[T Object] interface{ Finish(obj T) }

	// Locator says where an object lies, for permissions; without it, in its
	// organization.
	Locator[T Object] interface{ Scope(obj T) access.Scope }

	// Selectable names the fields that can be selected by, besides
	// metadata.name and metadata.namespace.
	Selectable[T Object] interface{ Fields(obj T) fields.Set }

	// Redacter returns what the caller of ctx may see of an object: obj itself,
	// or a copy with less in it. It never changes obj, which may be shared.
	Redacter[T Object] interface {
		Redact(ctx context.Context, obj T) T
	}

	// Revealer adds to the answer of a create call what is never stored.
	Revealer[T Object] interface{ Reveal(obj T) }

	// Expecter is told that a write is about to happen, and may still come to
	// nothing. It is for what has to be in force before anybody can read of it:
	// an Observer runs when readers and watchers may know already.
	Expecter[T Object] interface{ Expect(obj T) }

	// Observer is told of writes: after they are durable and before the call
	// answers. What it does must not fail and must not take long.
	Observer[T Object] interface {
		// Put: the object was created or changed.
		Put(obj T)
		// Remove: the object is gone, or a delete call was accepted and
		// finalizers hold it. It may be called more than once.
		Remove(obj T)
	}
)

// kind is a Kind with its roles found; those it does not play are nil.
type kind[T Object] struct {
	Kind[T]
	info         Info
	emptyObjects bool // in its type, see unknownFields

	defaulter       Defaulter[T]
	preparer        Preparer[T]
	statusPreparer  StatusPreparer[T]
	describer       Describer[T]
	warner          Warner[T]
	validator       Validator[T]
	createValidator CreateValidator[T]
	updateValidator UpdateValidator[T]
	deleteValidator DeleteValidator[T]
	deletionMarker  DeletionMarker[T]
	nameValidator   NameValidator
	admitter        Admitter[T]
	limiter         Limiter[T]
	revoker         Revoker[T]
	finisher        Finisher[T]
	locator         Locator[T]
	fields          Selectable[T]
	redacter        Redacter[T]
	revealer        Revealer[T]
	expecter        Expecter[T]
	observer        Observer[T]
	stored          func(obj T, gone bool) // nil: nobody else is told
}

func newKind[T Object](of Kind[T]) *kind[T] {
	k := &kind[T]{
		Kind: of, info: of.Info(),
		emptyObjects: hasEmptyObjects(reflect.TypeFor[T](), map[reflect.Type]bool{}),
	}
	k.defaulter, _ = of.(Defaulter[T])
	k.preparer, _ = of.(Preparer[T])
	k.statusPreparer, _ = of.(StatusPreparer[T])
	k.describer, _ = of.(Describer[T])
	k.warner, _ = of.(Warner[T])
	k.validator, _ = of.(Validator[T])
	k.createValidator, _ = of.(CreateValidator[T])
	k.updateValidator, _ = of.(UpdateValidator[T])
	k.deleteValidator, _ = of.(DeleteValidator[T])
	k.deletionMarker, _ = of.(DeletionMarker[T])
	k.nameValidator, _ = of.(NameValidator)
	k.admitter, _ = of.(Admitter[T])
	k.limiter, _ = of.(Limiter[T])
	k.revoker, _ = of.(Revoker[T])
	k.finisher, _ = of.(Finisher[T])
	k.locator, _ = of.(Locator[T])
	k.fields, _ = of.(Selectable[T])
	k.redacter, _ = of.(Redacter[T])
	k.revealer, _ = of.(Revealer[T])
	k.expecter, _ = of.(Expecter[T])
	k.observer, _ = of.(Observer[T])
	return k
}
