package filter

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// The limits of one evaluation.
const (
	maxElements   = 100_000     // items and members that are built as values, and so turns of loops
	maxLoopWork   = 200_000_000 // turns of loops times the length of the expression and its regexps
	maxRegexpWork = 16 << 20    // bytes of the message times the size of the regular expressions
	maxDepth      = 512         // nesting of a JSON document

	baseSteps    = 1 << 16
	stepsPerByte = 16
)

var (
	errBudget     = errors.New("message is too large to decode as often as the expression reads it")
	errRegexpWork = errors.New("message is too large for the regular expressions of the filter")
	errElements   = errors.New("expression reads lists and objects of too many elements")
)

// budget limits the work for one message. Whatever an expression does, it reads variables and
// members, and each read takes from the budget what it costs: steps for bytes that are decoded or
// skipped, and elements for the items of lists and objects. Loops cannot be nested, so an expression
// has at most as many turns as it reads elements.
//
// The cost limit of CEL is not used: its accounting of a loop takes quadratic time.
type budget struct {
	steps    int
	elements int
}

func newBudget(size int, f *Filter) budget {
	return budget{
		steps:    baseSteps + stepsPerByte*size,
		elements: min(maxElements, maxLoopWork/(len(f.text)*(1+f.regexps))),
	}
}

func (b *budget) spend(steps int) error {
	if b.steps -= steps; b.steps < 0 {
		return errBudget
	}
	return nil
}

func (b *budget) element(n int) error {
	if b.elements -= n; b.elements < 0 {
		return errElements
	}
	return nil
}

// adapter converts Go values to values of CEL.
var adapter types.Adapter = types.DefaultTypeAdapter

// source is an encoded object. Its values may be errors (*types.Err).
type source interface {
	// field returns a member, false when there is none.
	field(b *budget, name string) (ref.Val, bool)
	// each calls visit for all members.
	each(b *budget, visit func(name string, value ref.Val) error) error
}

// object is a map of CEL whose members are decoded when they are read.
type object struct {
	source source
	budget *budget
}

// whole returns the object as a map with all members.
func (o *object) whole() ref.Val {
	members := map[ref.Val]ref.Val{}
	err := o.source.each(o.budget, func(name string, value ref.Val) error {
		if types.IsError(value) {
			return value.(*types.Err)
		}
		members[types.String(name)] = value
		return o.budget.element(1)
	})
	if err != nil {
		return types.WrapErr(err)
	}
	return types.NewRefValMap(adapter, members)
}

// list returns a list of the values that each passes to its argument.
func list(b *budget, each func(add func(ref.Val) error) error) ref.Val {
	var items []ref.Val
	err := each(func(item ref.Val) error {
		if types.IsError(item) {
			return item.(*types.Err)
		}
		items = append(items, item)
		return b.element(1)
	})
	if err != nil {
		return types.WrapErr(err)
	}
	return types.NewRefValList(adapter, items)
}

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(t reflect.Type) (any, error) { return o.whole().ConvertToNative(t) }

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val { return o.whole().ConvertToType(t) }

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val {
	if lazy, ok := other.(*object); ok {
		other = lazy.whole()
	}
	whole := o.whole()
	if types.IsError(whole) {
		return whole
	}
	return whole.Equal(other)
}

// Type implements ref.Val.
func (*object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return o }

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	return o.source.field(o.budget, string(name))
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	if found, ok := o.Find(key); ok {
		return found
	}
	return types.NewErr("no such key: %v", key.Value())
}

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val {
	found, ok := o.Find(key)
	if ok && types.IsError(found) {
		return found
	}
	return types.Bool(ok)
}

// Size implements traits.Sizer.
func (o *object) Size() ref.Val { return o.wholeMap().Size() }

// Iterator implements traits.Iterable.
func (o *object) Iterator() traits.Iterator { return o.wholeMap().Iterator() }

// wholeMap is whole for methods that cannot return an error: it ends the evaluation, which then returns
// the error (interpreter.EvalCancelledError).
func (o *object) wholeMap() traits.Mapper {
	whole := o.whole()
	if members, ok := whole.(traits.Mapper); ok {
		return members
	}
	panic(interpreter.EvalCancelledError{
		Message: fmt.Sprint(whole.Value()), Cause: interpreter.CostLimitExceeded,
	})
}
