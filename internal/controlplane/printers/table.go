// Package printers converts objects to the tables that kubectl get shows.
//
// One converter serves every kind; a kind supplies only its columns. Name is the first and age the
// last column of every kind.
package printers

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"freshet/api/v1alpha1"
)

// Column is one column of a kind's table.
type Column struct {
	Name        string
	Type        string // "string" unless set
	Description string
	Wide        bool // shown with -o wide only
	Value       func(runtime.Object) any
}

// New returns the column of a kind with the objects T.
func New[T runtime.Object, V string | int64 | bool](name, description string, value func(T) V) Column {
	types := map[reflect.Kind]string{reflect.Int64: "integer", reflect.Bool: "boolean"}
	return Column{
		Name: name, Type: types[reflect.TypeFor[V]().Kind()], Description: description,
		Value: func(obj runtime.Object) any { return value(obj.(T)) },
	}
}

// NewWide returns a column that is shown with -o wide only.
func NewWide[T runtime.Object, V string | int64 | bool](name, description string, value func(T) V) Column {
	column := New(name, description, value)
	column.Wide = true
	return column
}

// Table converts objects and lists to tables.
type Table struct {
	Columns []Column
}

// ConvertToTable implements rest.TableConvertor.
func (t Table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		table.ColumnDefinitions = t.definitions()
	}
	add := func(obj runtime.Object) error {
		row, err := t.row(obj)
		if err != nil {
			return err
		}
		table.Rows = append(table.Rows, row)
		return nil
	}
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
		return table, meta.EachListItem(object, add)
	}
	if common, err := meta.CommonAccessor(object); err == nil {
		table.ResourceVersion = common.GetResourceVersion()
	}
	return table, add(object)
}

func (t Table) definitions() []metav1.TableColumnDefinition {
	defs := []metav1.TableColumnDefinition{{
		Name: "Name", Type: "string", Format: "name", Description: "Name of the resource.",
	}}
	for _, c := range t.Columns {
		def := metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Description: c.Description}
		def.Type = cmp.Or(def.Type, "string")
		if c.Wide {
			def.Priority = 1
		}
		defs = append(defs, def)
	}
	return append(defs, metav1.TableColumnDefinition{
		Name: "Age", Type: "string", Description: "Time since the resource was created.",
	})
}

func (t Table) row(obj runtime.Object) (metav1.TableRow, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return metav1.TableRow{}, fmt.Errorf("printing %T: %w", obj, err)
	}
	cells := make([]any, 0, len(t.Columns)+2)
	cells = append(cells, object.GetName())
	for _, c := range t.Columns {
		cells = append(cells, c.Value(obj))
	}
	cells = append(cells, Age(object.GetCreationTimestamp()))
	return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: obj}}, nil
}

// Age prints the time since t the way kubectl does.
func Age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// Conditions returns the READY and REASON columns of a kind.
func Conditions[T runtime.Object](of func(T) []v1alpha1.Condition) []Column {
	ready := func(obj T) v1alpha1.Condition {
		for _, c := range of(obj) {
			if c.Type == v1alpha1.ConditionReady {
				return c
			}
		}
		return v1alpha1.Condition{Status: v1alpha1.ConditionUnknown}
	}
	return []Column{
		New("Ready", "Whether the resource can be used.", func(obj T) string { return string(ready(obj).Status) }),
		New("Reason", "Why the resource is ready or not.", func(obj T) string { return ready(obj).Reason }),
	}
}
