package avro

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"freshet/internal/registry/jsontree"
)

// generator creates random schemas from small pools of names, so that two schemas have much
// in common.
type generator struct {
	*rand.Rand
	defined []string // full names that can be used
	wild    bool     // also create what matters only for the parser and printer
}

func newGenerator(seed uint64, wild bool) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 1)), wild: wild}
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func integerValue(text string) jsontree.Value {
	return jsontree.Value{Kind: jsontree.Number, Text: text}
}

func integerOf(n int) jsontree.Value { return integerValue(strconv.Itoa(n)) }

func str(s string) jsontree.Value { return jsontree.Value{Kind: jsontree.String, Text: s} }

func arr(list ...jsontree.Value) jsontree.Value {
	return jsontree.Value{Kind: jsontree.Array, List: &jsontree.List{Values: list}}
}

// obj returns an object. The arguments are alternating keys and values.
func obj(pairs ...any) jsontree.Value {
	v := jsontree.Value{Kind: jsontree.Object, List: &jsontree.List{}}
	for i := 0; i < len(pairs); i += 2 {
		switch x := pairs[i+1].(type) {
		case string:
			v.List.Put(pairs[i].(string), str(x))
		case int:
			v.List.Put(pairs[i].(string), integerOf(x))
		case jsontree.Value:
			v.List.Put(pairs[i].(string), x)
		}
	}
	return v
}

func textOf(v jsontree.Value) string {
	w := newWriter(1 << 20)
	w.Value(&v, false)
	return string(w.Buf)
}

var primitives = []string{"null", "boolean", "int", "long", "float", "double", "bytes", "string"}

// schema returns a random schema in a namespace.
func (g *generator) schema(depth int, space string, inUnion bool) jsontree.Value {
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
		v.List.Put("size", integerOf(1+g.IntN(3)))
		return g.props(v)
	}
	return g.record(depth, space)
}

func (g *generator) primitive() jsontree.Value {
	name := g.pick(primitives...)
	if g.chance(80) {
		return str(name)
	}
	return g.props(obj("type", name))
}

func (g *generator) union(depth int, space string) jsontree.Value {
	v := arr()
	seen := map[string]bool{}
	for range g.IntN(4) {
		b := g.schema(depth-1, space, true)
		key := b.Text
		if b.Kind == jsontree.Object {
			key, _ = b.GetText("type")
			if name, ok := b.GetText("name"); ok {
				key = name
			}
		}
		if !seen[key] {
			seen[key] = true
			v.List.Values = append(v.List.Values, b)
		}
	}
	return v
}

// named begins a named type and returns its namespace.
func (g *generator) named(kind, space string) (jsontree.Value, string) {
	name := g.pick("A", "B", "C", "D", "E", "F")
	v := obj("type", kind, "name", name)
	if g.chance(15) {
		space = g.pick("", "n", "n.m")
		v.List.Put("namespace", str(space))
	}
	full := name
	if space != "" {
		full = space + "." + name
	}
	if slices.Contains(g.defined, full) { // a name can be defined only once
		name += strconv.Itoa(len(g.defined))
		v.List.Put("name", str(name))
		full += strconv.Itoa(len(g.defined))
	}
	if g.chance(10) {
		v.List.Put("aliases", arr(str(g.pick("A", "B", "n.C", "D")), str(g.pick("n.m.A", "E"))))
	}
	if g.wild && g.chance(20) {
		v.List.Put("doc", str(g.pick("", "a doc", "a \"doc\" <é>\n\u0001")))
	}
	g.defined = append(g.defined, full)
	return v, space
}

func (g *generator) enum(space string) jsontree.Value {
	v, _ := g.named("enum", space)
	symbols := []jsontree.Value{}
	for _, s := range []string{"X", "Y", "Z", "W"} {
		if g.chance(60) {
			symbols = append(symbols, str(s))
		}
	}
	v.List.Put("symbols", arr(symbols...))
	if len(symbols) > 0 && g.chance(30) {
		v.List.Put("default", symbols[g.IntN(len(symbols))])
	}
	return g.props(v)
}

func (g *generator) record(depth int, space string) jsontree.Value {
	kind := "record"
	if g.wild && g.chance(5) {
		kind = "error"
	}
	v, space := g.named(kind, space)
	fields := []jsontree.Value{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if g.chance(55) {
			fields = append(fields, g.field(name, depth, space))
		}
	}
	g.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	v.List.Put("fields", arr(fields...))
	return g.props(v)
}

func (g *generator) field(name string, depth int, space string) jsontree.Value {
	t := g.schema(depth-1, space, false)
	f := obj("name", name, "type", t)
	if g.chance(40) {
		if d, ok := g.defaultFor(t, 3); ok {
			f.List.Put("default", d)
		}
	}
	if g.chance(8) {
		f.List.Put("aliases", arr(str(g.pick("a", "b", "x")), str(g.pick("c", "y"))))
	}
	if g.wild && g.chance(10) {
		f.List.Put("order", str(g.pick("ascending", "descending", "ignore", "IGNORE")))
	}
	if g.wild && g.chance(10) {
		f.List.Put("doc", str(g.pick("", "doc of a field")))
	}
	return g.props(f)
}

// props adds random properties.
func (g *generator) props(v jsontree.Value) jsontree.Value {
	if !g.wild || !g.chance(20) {
		return v
	}
	extra := obj("logicalType", g.pick("decimal", "date", "timestamp-millis", "uuid", "foo"), "precision", g.IntN(5),
		"scale", g.IntN(3),
		"z", obj("b", 1, "a",
			arr(integerOf(1), *doubleValue(1e9), *doubleValue(0.5), jsontree.Value{Kind: jsontree.Null},
				jsontree.Value{Kind: jsontree.True})),
		"connect.name", "x", "avro.java.string", "String", "\u00e9\U0001F600", "astral", "\uE000", "private",
		"default2", *doubleValue(-0.0001))
	for range 1 + g.IntN(4) {
		i := g.IntN(len(extra.List.Keys))
		v.List.Put(extra.List.Keys[i], extra.List.Values[i])
	}
	return v
}

// defaultFor returns a default for a type, sometimes an invalid one.
func (g *generator) defaultFor(t jsontree.Value, depth int) (jsontree.Value, bool) {
	if g.wild && g.chance(3) {
		return integerOf(7), true
	}
	name := t.Text
	if t.Kind == jsontree.Object {
		name, _ = t.GetText("type")
	}
	switch {
	case t.Kind == jsontree.Array:
		if len(t.List.Values) == 0 {
			return jsontree.Value{}, false
		}
		return g.defaultFor(t.List.Values[g.IntN(len(t.List.Values))], depth)
	case name == "null":
		return jsontree.Value{Kind: jsontree.Null}, true
	case name == "boolean":
		return jsontree.Value{Kind: jsontree.True}, true
	case name == "int":
		return integerOf(g.IntN(5) - 2), true
	case name == "long":
		return integerValue(g.pick("1", "5000000000", "-9223372036854775808")), true
	case name == "float" || name == "double":
		return []jsontree.Value{
			integerOf(3), *doubleValue(0.1), *doubleValue(1e30), integerValue("5000000000"),
			*doubleValue(-1.5e-7),
		}[g.IntN(5)], true
	case name == "bytes" || name == "string" || name == "fixed":
		return str(g.pick("", "x", "\u00ff", "€\U0001F600")), true
	case name == "enum":
		return str(g.pick("X", "Y")), true
	case name == "array":
		if item, ok := g.defaultFor(*t.Get("items"), depth-1); ok && depth > 0 {
			return arr(item, item), true
		}
		return arr(), true
	case name == "map":
		if item, ok := g.defaultFor(*t.Get("values"), depth-1); ok && depth > 0 {
			return obj("z", item, "k", item), true
		}
		return obj(), true
	case name == "record" && depth > 0:
		return g.recordDefault(t, depth)
	}
	return jsontree.Value{}, false
}

func (g *generator) recordDefault(t jsontree.Value, depth int) (jsontree.Value, bool) {
	d := obj()
	for _, f := range t.Get("fields").List.Values {
		if f.Get("default") != nil && g.chance(50) {
			continue
		}
		x, ok := g.defaultFor(*f.Get("type"), depth-1)
		if !ok {
			return jsontree.Value{}, false
		}
		name, _ := f.GetText("name")
		d.List.Put(name, x)
	}
	return d, true
}

// clone returns a deep copy of a value.
func clone(v jsontree.Value) jsontree.Value {
	if v.List == nil {
		return v
	}
	c := jsontree.Value{Kind: v.Kind, List: &jsontree.List{}}
	for i := range v.List.Values {
		if v.Kind == jsontree.Object {
			c.List.Put(v.List.Keys[i], clone(v.List.Values[i]))
		} else {
			c.List.Values = append(c.List.Values, clone(v.List.Values[i]))
		}
	}
	return c
}

// mutate changes random parts of a schema in place.
func (g *generator) mutate(v *jsontree.Value, percent int) {
	switch v.Kind {
	case jsontree.String:
		if slices.Contains(primitives, v.Text) && g.chance(percent) {
			*v = str(g.pick(primitives...))
		}
	case jsontree.Array:
		g.mutateBranches(v, percent)
	case jsontree.Object:
		for _, key := range []string{"items", "values"} {
			if e := v.Get(key); e != nil {
				g.mutate(e, percent)
			}
		}
		if s := v.Get("symbols"); s != nil && g.chance(2*percent) && len(s.List.Values) > 1 {
			s.List.Values = s.List.Values[1:]
			v.List = withoutKey(v.List, "default")
		}
		if s := v.Get("size"); s != nil && g.chance(percent) {
			*s = integerOf(1 + g.IntN(3))
		}
		if g.chance(percent/2) && v.Get("name") != nil && v.Get("fields") == nil {
			v.List.Put("aliases", arr(*v.Get("name")))
		}
		if f := v.Get("fields"); f != nil {
			g.mutateFields(f, percent)
		}
	}
}

func (g *generator) mutateBranches(v *jsontree.Value, percent int) {
	if g.chance(percent) && len(v.List.Values) > 0 {
		i := g.IntN(len(v.List.Values))
		v.List.Values = slices.Delete(v.List.Values, i, i+1)
	}
	for i := range v.List.Values {
		if v.List.Values[i].Kind == jsontree.Object {
			g.mutate(&v.List.Values[i], percent)
		}
	}
}

func (g *generator) mutateFields(f *jsontree.Value, percent int) {
	if g.chance(2*percent) && len(f.List.Values) > 0 {
		i := g.IntN(len(f.List.Values))
		f.List.Values = slices.Delete(f.List.Values, i, i+1)
	}
	if g.chance(2 * percent) {
		n := obj("name", g.pick("f", "g"), "type", "int")
		if g.chance(50) {
			n.List.Put("default", integerOf(0))
		}
		f.List.Values = append(f.List.Values, n)
	}
	for i := range f.List.Values {
		x := &f.List.Values[i]
		if g.chance(percent) {
			x.List = withoutKey(x.List, "default")
		}
		if x.Get("default") == nil {
			g.mutate(x.Get("type"), percent)
		}
	}
}

func withoutKey(l *jsontree.List, key string) *jsontree.List {
	c := &jsontree.List{}
	for i, k := range l.Keys {
		if k != key {
			c.Put(k, l.Values[i])
		}
	}
	return c
}
