package jsontree

import "iter"

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
)

// Value is one JSON value. Text is the content of a string, or a number as it was written.
// List is the content of an array or object, nil for other kinds.
type Value struct {
	Kind Kind
	Text string
	List *List
}

// List has the elements of an array, or the keys and values of an object's members in their
// order. A large object has an index by key; see BenchmarkGet.
type List struct {
	Keys   []string
	Values []Value
	index  map[string]int32
}

// indexFrom is the number of members from which an object gets an index.
const indexFrom = 16

// find returns the position of a member, or -1.
func (l *List) find(key string) int {
	if l.index != nil {
		if i, ok := l.index[key]; ok {
			return int(i)
		}
		return -1
	}
	for i, k := range l.Keys {
		if k == key {
			return i
		}
	}
	return -1
}

// Put adds a member to an object. An existing member of that key gets the new value and
// keeps its position.
func (l *List) Put(key string, v Value) {
	if i := l.find(key); i >= 0 {
		l.Values[i] = v
		return
	}
	l.Keys = append(l.Keys, key)
	l.Values = append(l.Values, v)
	switch n := len(l.Keys); {
	case l.index != nil:
		l.index[key] = int32(n - 1)
	case n == indexFrom:
		l.index = make(map[string]int32, 2*indexFrom)
		for i, k := range l.Keys {
			l.index[k] = int32(i)
		}
	}
}

// Get returns a member of an object, or nil if it does not exist or v is not an object. It
// may be called on a nil value.
func (v *Value) Get(key string) *Value {
	if v == nil || v.Kind != Object {
		return nil
	}
	if i := v.List.find(key); i >= 0 {
		return &v.List.Values[i]
	}
	return nil
}

// GetText returns a member that is a string, and whether it exists.
func (v *Value) GetText(key string) (string, bool) {
	if m := v.Get(key); m != nil && m.Kind == String {
		return m.Text, true
	}
	return "", false
}

// IsBool reports whether v is true or false.
func (v *Value) IsBool() bool { return v.Kind == True || v.Kind == False }

// Len returns the number of elements or members, 0 for other kinds.
func (v *Value) Len() int {
	if v.List == nil {
		return 0
	}
	return len(v.List.Values)
}

// Elements iterates over the elements of an array with their positions. Other kinds have
// none.
func (v *Value) Elements() iter.Seq2[int, *Value] {
	return func(yield func(int, *Value) bool) {
		if v.Kind != Array {
			return
		}
		for i := range v.List.Values {
			if !yield(i, &v.List.Values[i]) {
				return
			}
		}
	}
}

// Members iterates over the members of an object in their order. Other kinds have none.
func (v *Value) Members() iter.Seq2[string, *Value] {
	return func(yield func(string, *Value) bool) {
		if v.Kind != Object {
			return
		}
		for i, key := range v.List.Keys {
			if !yield(key, &v.List.Values[i]) {
				return
			}
		}
	}
}
