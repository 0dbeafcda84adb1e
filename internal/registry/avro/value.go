package avro

import (
	"encoding/binary"
	"math"
	"math/big"
)

// ValueKind is the kind of a Value.
type ValueKind uint8

// The kinds of values. A union is never a value: the value is that of its branch.
const (
	NullValue ValueKind = iota
	BooleanValue
	IntValue    // int and long
	DoubleValue // float, double, and bytes or fixed that are a decimal
	BytesValue  // bytes and fixed
	StringValue // string, and the symbol of an enum
	ListValue
	ObjectValue // record and map
)

// Value is a part of a datum in the binary encoding. It is decoded when it is read: reading one
// field of a record skips the fields before it, and builds no values for them. Reading one field of
// a large record is therefore cheap, and repeated reads repeat the work.
//
// All values of one datum share a budget of steps, so that the work on a datum is bounded however
// often it is read.
type Value struct {
	node   *node
	data   []byte // begins with the value; more may follow
	budget *int
}

// Value returns the datum that data begins with. budget is reduced with every step; reading fails
// when it is used up.
func (s *Schema) Value(data []byte, budget *int) (Value, error) {
	v := Value{node: s.root, data: data, budget: budget}
	return v.branch()
}

// branch returns the value of a union's branch.
func (v Value) branch() (Value, error) {
	for v.node.kind == kindUnion {
		d := decoder{data: v.data}
		i, err := d.index(len(v.node.branches), "branches of a union")
		if err != nil {
			return v, err
		}
		v.node, v.data = v.node.branches[i], v.data[d.pos:]
	}
	return v, nil
}

// Kind returns the kind of the value.
func (v Value) Kind() ValueKind {
	switch v.node.kind {
	case kindBoolean:
		return BooleanValue
	case kindInt, kindLong:
		return IntValue
	case kindFloat, kindDouble:
		return DoubleValue
	case kindBytes, kindFixed:
		if len(v.node.props) > 0 && v.node.logicalType() == "decimal" {
			return DoubleValue
		}
		return BytesValue
	case kindString, kindEnum:
		return StringValue
	case kindArray:
		return ListValue
	case kindMap, kindRecord:
		return ObjectValue
	}
	return NullValue
}

// Bool returns a BooleanValue.
func (v Value) Bool() (bool, error) {
	d := decoder{data: v.data}
	err := d.boolean()
	return err == nil && v.data[0] == 1, err
}

// Int returns an IntValue.
func (v Value) Int() (int64, error) {
	d := decoder{data: v.data}
	return d.long()
}

// Double returns a DoubleValue. A decimal is rounded to the nearest double.
func (v Value) Double() (float64, error) {
	d := decoder{data: v.data}
	switch v.node.kind {
	case kindFloat:
		if err := d.skip(4); err != nil {
			return 0, err
		}
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.data))), nil
	case kindDouble:
		if err := d.skip(8); err != nil {
			return 0, err
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(v.data)), nil
	}
	unscaled, err := v.Bytes()
	if err != nil {
		return 0, err
	}
	return v.decimal(unscaled)
}

// maxDecimalBytes bounds a decimal, whose conversion takes more than linear time.
const maxDecimalBytes = 256

// decimal converts a big-endian number in two's complement.
func (v Value) decimal(unscaled []byte) (float64, error) {
	if len(unscaled) > maxDecimalBytes {
		return 0, invalid("decimal has more than %d bytes", maxDecimalBytes)
	}
	n := new(big.Int).SetBytes(unscaled)
	if len(unscaled) > 0 && unscaled[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(unscaled))))
	}
	f, _ := new(big.Float).SetInt(n).Float64()
	scale, _ := intProp(v.node, "scale")
	return f / math.Pow10(scale), nil
}

// Bytes returns a BytesValue or a StringValue. The result shares memory with the datum.
func (v Value) Bytes() ([]byte, error) {
	d := decoder{data: v.data}
	switch v.node.kind {
	case kindFixed:
		if err := d.skip(int64(v.node.named.size)); err != nil {
			return nil, err
		}
		return v.data[:v.node.named.size], nil
	case kindEnum:
		i, err := d.index(len(v.node.named.symbols), "symbols of an enum")
		if err != nil {
			return nil, err
		}
		return []byte(v.node.named.symbols[i]), nil
	}
	return d.bytes()
}

// Field returns a field of a record or a value of a map; false when it has none of that name.
func (v Value) Field(name string) (Value, bool, error) {
	if v.node.kind != kindRecord {
		return v.entry(name)
	}
	f := v.node.named.byName[name]
	if f == nil {
		return Value{}, false, nil
	}
	d := v.decoder()
	for _, before := range v.node.named.fields[:f.pos] {
		if err := d.datum(before.node); err != nil {
			return Value{}, false, v.spent(&d, err)
		}
	}
	found, err := v.part(&d, f.node)
	return found, err == nil, v.spent(&d, err)
}

// entry returns a value of a map. If a key is repeated, the last one counts.
func (v Value) entry(name string) (found Value, ok bool, err error) {
	err = v.Each(func(key string, value Value) error {
		if key == name {
			found, ok = value, true
		}
		return nil
	})
	return found, ok && err == nil, err
}

// Each calls visit for the fields of a record, the entries of a map or the items of a list, in their
// order. The name of an item is "".
func (v Value) Each(visit func(name string, value Value) error) error {
	d := v.decoder()
	if v.node.kind == kindRecord {
		for _, f := range v.node.named.fields {
			if err := v.visit(&d, f.name, f.node, visit); err != nil {
				return v.spent(&d, err)
			}
		}
		return v.spent(&d, nil)
	}
	for {
		count, err := d.long()
		if err == nil && count < 0 {
			count = -count // followed by the size of the block in bytes
			_, err = d.long()
		}
		if err != nil || count == 0 {
			return v.spent(&d, err)
		}
		for range uint64(count) { //nolint:gosec // the lowest int64 stays a huge count, which the budget ends
			name := ""
			if v.node.kind == kindMap {
				key, err := d.bytes()
				if err != nil {
					return v.spent(&d, err)
				}
				name = string(key)
			}
			if err := v.visit(&d, name, v.node.elem, visit); err != nil {
				return v.spent(&d, err)
			}
		}
	}
}

// visit passes the next part of the value to visit, and skips it.
func (v Value) visit(d *decoder, name string, n *node, visit func(string, Value) error) error {
	item, err := v.part(d, n)
	if err != nil {
		return err
	}
	// visit may read the item with the same budget.
	*v.budget = d.budget
	if err := visit(name, item); err != nil {
		return err
	}
	d.budget = *v.budget
	return d.datum(n)
}

// part returns the value of type n at the decoder's position.
func (v Value) part(d *decoder, n *node) (Value, error) {
	return Value{node: n, data: v.data[d.pos:], budget: v.budget}.branch()
}

func (v Value) decoder() decoder {
	return decoder{data: v.data, budget: *v.budget, lax: true}
}

// spent takes the steps of a decoder from the budget, and returns err.
func (v Value) spent(d *decoder, err error) error {
	*v.budget = min(*v.budget, d.budget)
	return err
}
