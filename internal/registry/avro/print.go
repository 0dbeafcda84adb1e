package avro

import (
	"strconv"

	"freshet/internal/registry/jsontree"
)

// printer prints a schema as Java's Schema.toString does.
type printer struct {
	jsontree.Writer
	foreign   map[string]struct{} // types that are always written by name
	normalize bool                // see Normalized
	only      *node               // if set, the only type to define, without docs and aliases

	written  map[string]struct{}
	defaults defaultChecker
}

// print prints the whole schema.
func (s *Schema) print(p printer) (string, error) {
	p.Writer = newWriter(maxPrintedBytes)
	p.Buf = make([]byte, 0, len(s.text)+64)
	p.node(s.root, "")
	if p.Err != nil {
		return "", printError(p.Err)
	}
	return string(p.Buf), nil
}

// member writes a member whose value is a string.
func (p *printer) member(key, text string) {
	p.Key(key)
	p.Text(text)
}

// node writes a schema inside the given namespace.
func (p *printer) node(n *node, space string) {
	if p.Err != nil {
		return
	}
	switch {
	case n.kind.named():
		p.named(n, space)
	case n.kind == kindUnion:
		p.Open('[')
		for _, b := range n.branches {
			p.Comma()
			p.node(b, space)
		}
		p.Close(']')
	case n.kind == kindArray || n.kind == kindMap:
		p.Open('{')
		p.member("type", n.kind.String())
		p.Key(elemKey(n.kind))
		p.node(n.elem, space)
		p.nodeProps(n)
		p.Close('}')
	case len(n.props) == 0:
		p.Text(n.kind.String())
	default:
		p.Open('{')
		p.member("type", n.kind.String())
		p.nodeProps(n)
		p.Close('}')
	}
}

// byName reports whether a type is written by name, because a reference or an earlier part
// of the text defines it. Otherwise it marks the type as defined.
func (p *printer) byName(n *node) bool {
	full := n.named.name.full
	if p.only != nil && n != p.only {
		return true
	}
	if _, ok := p.foreign[full]; ok {
		return true
	}
	if _, ok := p.written[full]; ok {
		return true
	}
	if p.written == nil {
		p.written = map[string]struct{}{}
	}
	p.written[full] = struct{}{}
	return false
}

// named writes a named type.
func (p *printer) named(n *node, space string) {
	t := n.named
	if p.byName(n) {
		p.Text(t.name.relative(space))
		return
	}
	p.Open('{')
	if t.isError && !p.normalize {
		p.member("type", "error")
	} else {
		p.member("type", n.kind.String())
	}
	p.member("name", t.name.name)
	if t.name.space != space {
		p.member("namespace", t.name.space)
	}
	if t.doc != nil && p.only == nil && (*t.doc != "" || !p.normalize) {
		p.member("doc", *t.doc)
	}
	switch n.kind {
	case kindRecord:
		p.fields(t)
	case kindEnum:
		p.symbols(t)
	default:
		p.Key("size")
		p.raw(strconv.Itoa(t.size))
	}
	p.nodeProps(n)
	p.typeAliases(t)
	p.Close('}')
}

func (p *printer) symbols(t *named) {
	p.Key("symbols")
	p.strings(t.symbols)
	if t.enumDefault != nil {
		p.member("default", *t.enumDefault)
	}
}

// strings writes an array of strings.
func (p *printer) strings(list []string) {
	p.Open('[')
	for _, s := range list {
		p.Comma()
		p.Text(s)
	}
	p.Close(']')
}

// fields writes the fields of a record.
func (p *printer) fields(t *named) {
	p.Key("fields")
	p.Open('[')
	for _, f := range t.fields {
		p.Comma()
		p.Open('{')
		p.member("name", f.name)
		p.Key("type")
		p.node(f.node, t.name.space)
		if f.doc != nil && p.only == nil {
			p.member("doc", *f.doc)
		}
		if f.def != nil {
			p.Key("default")
			if p.normalize {
				p.typedValue(f.def, f.node)
			} else {
				p.Value(f.def, false)
			}
		}
		if f.order != ascending {
			p.member("order", orderNames[f.order])
		}
		p.fieldAliases(f)
		p.props(f.props, 0)
		p.Close('}')
		if p.Err != nil {
			return
		}
	}
	p.Close(']')
}
