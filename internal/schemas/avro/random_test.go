package avro

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// generator makes random schemas from small pools of names, so that two of them
// have much in common.
type generator struct {
	*rand.Rand
	defined []string // full names that can be used
	wild    bool     // also make what only the parser and printer care about
}

func newGenerator(seed uint64, wild bool) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1)), wild: wild}
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func str(s string) value { return value{kind: valueString, text: s} }

func arr(list ...value) value { return value{kind: valueArray, list: &valueList{values: list}} }

// obj makes an object of keys and values in turns.
func obj(pairs ...any) value {
	v := value{kind: valueObject, list: &valueList{}}
	for i := 0; i < len(pairs); i += 2 {
		switch x := pairs[i+1].(type) {
		case string:
			v.list.put(pairs[i].(string), str(x))
		case int:
			v.list.put(pairs[i].(string), integerOf(x))
		case value:
			v.list.put(pairs[i].(string), x)
		}
	}
	return v
}

func textOf(v value) string {
	w := writer{limit: 1 << 20}
	w.value(&v)
	return string(w.buf)
}

var primitives = []string{"null", "boolean", "int", "long", "float", "double", "bytes", "string"}

// schema makes a schema in a namespace.
func (g *generator) schema(depth int, space string, inUnion bool) value {
	n := g.IntN(100)
	switch {
	case depth <= 0 || n < 35:
		return g.primitive()
	case n < 43:
		return g.props(obj("type", "array", "items", g.schema(depth-1, space, false)))
	case n < 50:
		return g.props(obj("type", "map", "values", g.schema(depth-1, space, false)))
	case n < 62 && !inUnion:
		return g.union(depth, space)
	case n < 72 && len(g.defined) > 0:
		return str(g.pick(g.defined...))
	case n < 80:
		return g.enum(space)
	case n < 86:
		v, _ := g.named("fixed", space)
		v.list.put("size", integerOf(1+g.IntN(3)))
		return g.props(v)
	}
	return g.record(depth, space)
}

func (g *generator) primitive() value {
	name := g.pick(primitives...)
	if g.chance(80) {
		return str(name)
	}
	return g.props(obj("type", name))
}

func (g *generator) union(depth int, space string) value {
	v := arr()
	seen := map[string]bool{}
	for range g.IntN(4) {
		b := g.schema(depth-1, space, true)
		key := b.text
		if b.kind == valueObject {
			key, _ = b.textOf("type")
			if name, ok := b.textOf("name"); ok {
				key = name
			}
		}
		if !seen[key] {
			seen[key] = true
			v.list.values = append(v.list.values, b)
		}
	}
	return v
}

// named begins a named type and returns its namespace.
func (g *generator) named(kind, space string) (value, string) {
	name := g.pick("A", "B", "C", "D", "E", "F")
	v := obj("type", kind, "name", name)
	if g.chance(15) {
		space = g.pick("", "n", "n.m")
		v.list.put("namespace", str(space))
	}
	full := name
	if space != "" {
		full = space + "." + name
	}
	if slices.Contains(g.defined, full) { // a name can be defined once only
		name += strconv.Itoa(len(g.defined))
		v.list.put("name", str(name))
		full += strconv.Itoa(len(g.defined))
	}
	if g.chance(10) {
		v.list.put("aliases", arr(str(g.pick("A", "B", "n.C", "D")), str(g.pick("n.m.A", "E"))))
	}
	if g.wild && g.chance(20) {
		v.list.put("doc", str(g.pick("", "a doc", "a \"doc\" <é>\n\u0001")))
	}
	g.defined = append(g.defined, full)
	return v, space
}

func (g *generator) enum(space string) value {
	v, _ := g.named("enum", space)
	symbols := []value{}
	for _, s := range []string{"X", "Y", "Z", "W"} {
		if g.chance(60) {
			symbols = append(symbols, str(s))
		}
	}
	v.list.put("symbols", arr(symbols...))
	if len(symbols) > 0 && g.chance(30) {
		v.list.put("default", symbols[g.IntN(len(symbols))])
	}
	return g.props(v)
}

func (g *generator) record(depth int, space string) value {
	kind := "record"
	if g.wild && g.chance(5) {
		kind = "error"
	}
	v, space := g.named(kind, space)
	fields := []value{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if g.chance(55) {
			fields = append(fields, g.field(name, depth, space))
		}
	}
	g.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	v.list.put("fields", arr(fields...))
	return g.props(v)
}

func (g *generator) field(name string, depth int, space string) value {
	t := g.schema(depth-1, space, false)
	f := obj("name", name, "type", t)
	if g.chance(40) {
		if d, ok := g.defaultFor(t, 3); ok {
			f.list.put("default", d)
		}
	}
	if g.chance(8) {
		f.list.put("aliases", arr(str(g.pick("a", "b", "x")), str(g.pick("c", "y"))))
	}
	if g.wild && g.chance(10) {
		f.list.put("order", str(g.pick("ascending", "descending", "ignore", "IGNORE")))
	}
	if g.wild && g.chance(10) {
		f.list.put("doc", str(g.pick("", "doc of a field")))
	}
	return g.props(f)
}

// props adds properties.
func (g *generator) props(v value) value {
	if !g.wild || !g.chance(20) {
		return v
	}
	extra := obj("logicalType", g.pick("decimal", "date", "timestamp-millis", "uuid", "foo"), "precision", g.IntN(5), "scale", g.IntN(3),
		"z", obj("b", 1, "a", arr(integerOf(1), doubleValue(1e9), doubleValue(0.5), value{kind: valueNull}, value{kind: valueTrue})),
		"connect.name", "x", "avro.java.string", "String", "\u00e9\U0001F600", "astral", "\uE000", "private", "default2", doubleValue(-0.0001))
	for range 1 + g.IntN(4) {
		i := g.IntN(len(extra.list.keys))
		v.list.put(extra.list.keys[i], extra.list.values[i])
	}
	return v
}

// defaultFor makes a default for a type; now and then a wrong one.
func (g *generator) defaultFor(t value, depth int) (value, bool) {
	if g.wild && g.chance(3) {
		return integerOf(7), true
	}
	name := t.text
	if t.kind == valueObject {
		name, _ = t.textOf("type")
	}
	switch {
	case t.kind == valueArray:
		if len(t.list.values) == 0 {
			return value{}, false
		}
		return g.defaultFor(t.list.values[g.IntN(len(t.list.values))], depth)
	case name == "null":
		return value{kind: valueNull}, true
	case name == "boolean":
		return value{kind: valueTrue}, true
	case name == "int":
		return integerOf(g.IntN(5) - 2), true
	case name == "long":
		return integerValue(g.pick("1", "5000000000", "-9223372036854775808")), true
	case name == "float" || name == "double":
		return []value{integerOf(3), doubleValue(0.1), doubleValue(1e30), integerValue("5000000000"), doubleValue(-1.5e-7)}[g.IntN(5)], true
	case name == "bytes" || name == "string" || name == "fixed":
		return str(g.pick("", "x", "\u00ff", "€\U0001F600")), true
	case name == "enum":
		return str(g.pick("X", "Y")), true
	case name == "array":
		if item, ok := g.defaultFor(*t.get("items"), depth-1); ok && depth > 0 {
			return arr(item, item), true
		}
		return arr(), true
	case name == "map":
		if item, ok := g.defaultFor(*t.get("values"), depth-1); ok && depth > 0 {
			return obj("z", item, "k", item), true
		}
		return obj(), true
	case name == "record" && depth > 0:
		return g.recordDefault(t, depth)
	}
	return value{}, false
}

func (g *generator) recordDefault(t value, depth int) (value, bool) {
	d := obj()
	for _, f := range t.get("fields").list.values {
		if f.get("default") != nil && g.chance(50) {
			continue
		}
		x, ok := g.defaultFor(*f.get("type"), depth-1)
		if !ok {
			return value{}, false
		}
		name, _ := f.textOf("name")
		d.list.put(name, x)
	}
	return d, true
}

// clone copies a value deeply.
func clone(v value) value {
	if v.list == nil {
		return v
	}
	c := value{kind: v.kind, list: &valueList{}}
	for i := range v.list.values {
		if v.kind == valueObject {
			c.list.put(v.list.keys[i], clone(v.list.values[i]))
		} else {
			c.list.values = append(c.list.values, clone(v.list.values[i]))
		}
	}
	return c
}

// mutate changes a schema here and there, in place.
func (g *generator) mutate(v *value, percent int) {
	switch v.kind {
	case valueString:
		if slices.Contains(primitives, v.text) && g.chance(percent) {
			*v = str(g.pick(primitives...))
		}
	case valueArray:
		g.mutateBranches(v, percent)
	case valueObject:
		for _, key := range []string{"items", "values"} {
			if e := v.get(key); e != nil {
				g.mutate(e, percent)
			}
		}
		if s := v.get("symbols"); s != nil && g.chance(2*percent) && len(s.list.values) > 1 {
			s.list.values = s.list.values[1:]
			v.list = withoutKey(v.list, "default")
		}
		if s := v.get("size"); s != nil && g.chance(percent) {
			*s = integerOf(1 + g.IntN(3))
		}
		if g.chance(percent/2) && v.get("name") != nil && v.get("fields") == nil {
			v.list.put("aliases", arr(*v.get("name")))
		}
		if f := v.get("fields"); f != nil {
			g.mutateFields(f, percent)
		}
	}
}

func (g *generator) mutateBranches(v *value, percent int) {
	if g.chance(percent) && len(v.list.values) > 0 {
		i := g.IntN(len(v.list.values))
		v.list.values = slices.Delete(v.list.values, i, i+1)
	}
	for i := range v.list.values {
		if v.list.values[i].kind == valueObject {
			g.mutate(&v.list.values[i], percent)
		}
	}
}

func (g *generator) mutateFields(f *value, percent int) {
	if g.chance(2*percent) && len(f.list.values) > 0 {
		i := g.IntN(len(f.list.values))
		f.list.values = slices.Delete(f.list.values, i, i+1)
	}
	if g.chance(2 * percent) {
		n := obj("name", g.pick("f", "g"), "type", "int")
		if g.chance(50) {
			n.list.put("default", integerOf(0))
		}
		f.list.values = append(f.list.values, n)
	}
	for i := range f.list.values {
		x := &f.list.values[i]
		if g.chance(percent) {
			x.list = withoutKey(x.list, "default")
		}
		if x.get("default") == nil {
			g.mutate(x.get("type"), percent)
		}
	}
}

func withoutKey(l *valueList, key string) *valueList {
	c := &valueList{}
	for i, k := range l.keys {
		if k != key {
			c.put(k, l.values[i])
		}
	}
	return c
}
