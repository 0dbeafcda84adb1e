package avro

// printer writes a schema as Java's Schema.toString does.
type printer struct {
	writer
	foreign   map[string]struct{} // types to write by name always
	normalize bool                // see Normalized
	only      *node               // if set, the only type to define, without docs and aliases

	written  map[string]struct{}
	defaults defaultChecker
}

// print runs a printer over the whole schema.
func (s *Schema) print(p printer) (string, error) {
	p.limit = maxPrintedBytes
	p.buf = make([]byte, 0, len(s.text)+64)
	p.node(s.root, "")
	if p.err != nil {
		return "", p.err
	}
	return string(p.buf), nil
}

// node writes a schema that stands inside the given namespace.
func (p *printer) node(n *node, space string) {
	if p.err != nil {
		return
	}
	switch {
	case n.kind.named():
		p.named(n, space)
	case n.kind == kindUnion:
		p.open('[')
		for _, b := range n.branches {
			p.comma()
			p.node(b, space)
		}
		p.close(']')
	case n.kind == kindArray || n.kind == kindMap:
		p.open('{')
		p.member("type", n.kind.String())
		p.key(elemKey(n.kind))
		p.node(n.elem, space)
		p.nodeProps(n)
		p.close('}')
	case len(n.props) == 0:
		p.string(n.kind.String())
	default:
		p.open('{')
		p.member("type", n.kind.String())
		p.nodeProps(n)
		p.close('}')
	}
}

// byName reports whether a type is to be written by name, because it is defined
// elsewhere or was defined before; otherwise it counts as defined from now on.
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
		p.string(t.name.relative(space))
		return
	}
	p.open('{')
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
		size := integerOf(t.size)
		p.key("size")
		p.value(&size)
	}
	p.nodeProps(n)
	p.typeAliases(t)
	p.close('}')
}

func (p *printer) symbols(t *named) {
	p.key("symbols")
	p.strings(t.symbols)
	if t.enumDefault != nil {
		p.member("default", *t.enumDefault)
	}
}

// strings writes an array of strings.
func (p *printer) strings(list []string) {
	p.open('[')
	for _, s := range list {
		p.comma()
		p.string(s)
	}
	p.close(']')
}

// fields writes the fields of a record.
func (p *printer) fields(t *named) {
	p.key("fields")
	p.open('[')
	for _, f := range t.fields {
		p.comma()
		p.open('{')
		p.member("name", f.name)
		p.key("type")
		p.node(f.node, t.name.space)
		if f.doc != nil && p.only == nil {
			p.member("doc", *f.doc)
		}
		if f.def != nil {
			p.key("default")
			if p.normalize {
				p.typedValue(f.def, f.node)
			} else {
				p.value(f.def)
			}
		}
		if f.order != ascending {
			p.member("order", orderNames[f.order])
		}
		p.fieldAliases(f)
		p.props(f.props, 0)
		p.close('}')
		if p.err != nil {
			return
		}
	}
	p.close(']')
}
