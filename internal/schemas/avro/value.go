package avro

// valueKind tells the JSON kinds apart, and the numbers by how Java holds them.
type valueKind uint8

const (
	valueNull valueKind = iota
	valueFalse
	valueTrue
	valueInt    // fits 32 bits
	valueLong   // fits 64 bits
	valueBig    // any other integer
	valueDouble // written with a point or an exponent
	valueString
	valueArray
	valueObject
)

// value is one JSON value that keeps the order of its members. text holds the
// content of a string, or a number as it is to be printed; list the content of
// an array or object.
type value struct {
	kind valueKind
	text string
	list *valueList
}

// valueList holds the elements of an array, or the members of an object, whose
// keys stand beside them. A large object has an index by key.
type valueList struct {
	keys   []string
	values []value
	index  map[string]int
}

// indexFrom is the number of members from which an object gets an index.
const indexFrom = 16

// find returns the position of a member, or -1.
func (l *valueList) find(key string) int {
	if l.index != nil {
		if i, ok := l.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range l.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// put adds a member. As in Java the last of several members with one key
// decides the value, the first the position.
func (l *valueList) put(key string, v value) {
	if i := l.find(key); i >= 0 {
		l.values[i] = v
		return
	}
	l.keys = append(l.keys, key)
	l.values = append(l.values, v)
	switch {
	case l.index != nil:
		l.index[key] = len(l.keys) - 1
	case len(l.keys) == indexFrom:
		l.index = make(map[string]int, 2*indexFrom)
		for i, k := range l.keys {
			l.index[k] = i
		}
	}
}

// get returns a member of an object, or nil when there is none or v is not an
// object.
func (v *value) get(key string) *value {
	if v.kind != valueObject {
		return nil
	}
	if i := v.list.find(key); i >= 0 {
		return &v.list.values[i]
	}
	return nil
}

// textOf returns a string member, and whether there is one.
func (v *value) textOf(key string) (string, bool) {
	m := v.get(key)
	if m == nil || m.kind != valueString {
		return "", false
	}
	return m.text, true
}

// isNumber reports whether v is a number of any kind.
func (v *value) isNumber() bool {
	return v.kind >= valueInt && v.kind <= valueDouble
}

// quoted prints v for an error message, shortened when it is long.
func (v *value) quoted() string {
	w := writer{limit: maxQuotedBytes * 4}
	w.value(v)
	return shorten(string(w.buf))
}
