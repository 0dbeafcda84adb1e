package avro

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	other "github.com/twmb/avro"

	"freshet/internal/registry/jsontree"
)

// check calls Check without a spend function.
func check(reader, writer *Schema) []Incompatibility {
	found, err := Check(reader, writer, nil)
	if err != nil {
		panic(err)
	}
	return found
}

// rounds returns the number of random cases: AVRO_ROUNDS if it is set, else few.
func rounds(t testing.TB, few int) uint64 {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("AVRO_ROUNDS")); err == nil {
		return uint64(n)
	}
	return uint64(few)
}

// TestPropertiesOfRandomSchemas checks properties that every schema must have.
func TestPropertiesOfRandomSchemas(t *testing.T) {
	t.Parallel()
	accepted := 0
	for seed := range rounds(t, 1500) {
		g := newGenerator(seed, true)
		text := textOf(g.schema(5, g.pick("", "n"), false))
		s, err := Parse(text, nil)
		if err != nil {
			continue
		}
		accepted++
		checkProperties(t, s)
	}
	if accepted == 0 {
		t.Error("no random schema is valid")
	}
}

func checkProperties(t *testing.T, s *Schema) {
	t.Helper()
	again, err := Parse(s.Canonical(), nil)
	if err != nil {
		t.Fatalf("canonical text %s: %v", s.Canonical(), err)
	}
	if again.Canonical() != s.Canonical() {
		t.Errorf("canonical text changes:\n%s\n%s", s.Canonical(), again.Canonical())
	}
	if s.Resolved() != s.Canonical() {
		t.Errorf("resolved text differs without references:\n%s\n%s", s.Resolved(), s.Canonical())
	}
	normal, err := Parse(s.Normalized(), nil)
	if err != nil {
		t.Fatalf("normalized text %s: %v", s.Normalized(), err)
	}
	if normal.Normalized() != s.Normalized() || normal.Canonical() != s.Normalized() {
		t.Errorf("normalized text changes:\n%s\n%s\n%s", s.Normalized(), normal.Normalized(), normal.Canonical())
	}
	if ambiguous(check(s, s)) {
		return
	}
	for name, problems := range map[string][]Incompatibility{
		"itself":            check(s, s),
		"its canonical":     check(s, again),
		"its normal form":   check(s, normal),
		"of its canonical":  check(again, s),
		"of its normalized": check(normal, s),
	} {
		if len(problems) > 0 {
			t.Errorf("%s\n is not a reader of %s: %v", s.Canonical(), name, problems)
		}
	}
}

// ambiguous reports whether a check ended because several writer fields match a field.
func ambiguous(problems []Incompatibility) bool {
	return len(problems) == 1 && problems[0].Type == AmbiguousFieldAliases
}

// TestCheckAgreesWithOtherImplementation compares the results with another implementation. The schemas avoid the
// points in which that one differs from Java and from this package: it takes null as the
// default of a field whose union begins with null, it allows aliases that make a field
// ambiguous, and it can need exponential time for defaults of records.
func TestCheckAgreesWithOtherImplementation(t *testing.T) {
	t.Parallel()
	compared, incompatible := 0, 0
	for seed := range rounds(t, 1500) {
		g := newGenerator(seed, false)
		a := plain(g.schema(5, "", false))
		b := clone(a)
		g.mutate(&b, 6)
		b = plain(b)
		if g.chance(20) {
			b = plain(newGenerator(seed+1<<32, false).schema(5, "", false))
		}
		reader, err1 := Parse(textOf(a), nil)
		writer, err2 := Parse(textOf(b), nil)
		r, err3 := other.Parse(textOf(a))
		w, err4 := other.Parse(textOf(b))
		if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
			continue
		}
		compared++
		problems := check(reader, writer)
		if len(problems) > 0 {
			incompatible++
		}
		if err := other.CheckCompatibility(w, r); (err == nil) != (len(problems) == 0) {
			t.Errorf("reader %s\nwriter %s\n got  %v\n want %v", textOf(a), textOf(b), problems, err)
		}
	}
	if compared < 100 || incompatible < 20 || incompatible == compared {
		t.Errorf("%d pairs compared, %d incompatible: too few for a meaningful comparison", compared, incompatible)
	}
}

// plain removes from a schema what the other implementation treats differently.
func plain(v jsontree.Value) jsontree.Value {
	if v.List == nil {
		return v
	}
	c := jsontree.Value{Kind: v.Kind, List: &jsontree.List{}}
	for i := range v.List.Values {
		switch {
		case v.Kind == jsontree.Array:
			c.List.Values = append(c.List.Values, plain(v.List.Values[i]))
		case v.List.Keys[i] != "aliases" && (v.List.Keys[i] != "default" || v.List.Values[i].Kind != jsontree.Object):
			c.List.Put(v.List.Keys[i], plain(v.List.Values[i]))
		}
	}
	if t := c.Get("type"); t != nil && t.Kind == jsontree.Array && len(t.List.Values) > 0 {
		if name, _ := t.List.Values[0].GetText("type"); name == "null" || t.List.Values[0].Text == "null" {
			c.List.Put("default", jsontree.Value{Kind: jsontree.Null})
		}
	}
	return c
}

// TestDecodeDatumAcceptsOtherEncoders encodes random data with another implementation.
// DecodeDatum must accept the data and reject every proper prefix of it.
func TestDecodeDatumAcceptsOtherEncoders(t *testing.T) {
	t.Parallel()
	encoded := 0
	for seed := range rounds(t, 1500) {
		g := newGenerator(seed, false)
		text := textOf(g.schema(4, "", false))
		s, err := Parse(text, nil)
		if err != nil {
			continue
		}
		o, err := other.Parse(text)
		if err != nil {
			continue
		}
		datum, ok := g.datum(s.root, 6)
		if !ok {
			continue
		}
		data, err := o.Encode(datum)
		if err != nil {
			continue
		}
		encoded++
		if err := s.DecodeDatum(data); err != nil {
			t.Errorf("%s\n datum %v = %x: %v", text, datum, data, err)
		}
		for cut := range data {
			if s.DecodeDatum(data[:cut]) == nil {
				t.Errorf("%s\n datum %x is accepted without its last %d bytes", text, data, len(data)-cut)
			}
		}
		if s.DecodeDatum(append(data, 0)) == nil {
			t.Errorf("%s\n datum %x is accepted with an extra byte", text, data)
		}
	}
	if encoded < 100 {
		t.Errorf("only %d data encoded", encoded)
	}
}

// datum returns a random datum for the other implementation.
func (g *generator) datum(n *node, depth int) (any, bool) {
	if depth < 0 {
		return nil, false
	}
	switch n.kind {
	case kindNull:
		return nil, true
	case kindBoolean:
		return g.chance(50), true
	case kindInt:
		return int32(g.Uint32()), true
	case kindLong:
		return int64(g.Uint64() >> g.IntN(64)), true
	case kindFloat:
		return float32(g.NormFloat64()), true
	case kindDouble:
		return math.Float64frombits(g.Uint64()), true
	case kindBytes:
		return []byte(strings.Repeat("\xff", g.IntN(3))), true
	case kindString:
		return strings.Repeat("é", g.IntN(100)), true
	case kindFixed:
		return make([]byte, n.named.size), true
	case kindEnum:
		if len(n.named.symbols) == 0 {
			return nil, false
		}
		return g.pick(n.named.symbols...), true
	case kindUnion:
		return g.unionDatum(n, depth)
	}
	return g.containerDatum(n, depth)
}

func (g *generator) unionDatum(n *node, depth int) (any, bool) {
	for _, b := range n.branches {
		if b.kind.primitive() || g.chance(50) {
			return g.datum(b, depth-1)
		}
	}
	return nil, false
}

func (g *generator) containerDatum(n *node, depth int) (any, bool) {
	switch n.kind {
	case kindArray:
		list := []any{}
		for range g.IntN(3) {
			if x, ok := g.datum(n.elem, depth-1); ok {
				list = append(list, x)
			}
		}
		return list, true
	case kindMap:
		m := map[string]any{}
		for range g.IntN(3) {
			if x, ok := g.datum(n.elem, depth-1); ok {
				m[g.pick("a", "b", "é")] = x
			}
		}
		return m, true
	}
	m := map[string]any{}
	for _, f := range n.named.fields {
		x, ok := g.datum(f.node, depth-1)
		if !ok {
			return nil, false
		}
		m[f.name] = x
	}
	return m, true
}
