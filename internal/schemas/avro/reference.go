package avro

// addReferences makes the types of the references known, in the order listed.
func (p *parser) addReferences(refs []Reference) error {
	for _, ref := range refs {
		if ref.Schema == nil {
			return invalid("No schema reference found for %q", ref.Name)
		}
		if err := p.addReference(ref.Schema); err != nil {
			return err
		}
	}
	return nil
}

// addReference makes the types of one referenced schema known. Where two
// references bring different versions of a third one, the first wins, as in
// Java, where every text is read once and in order: the second is then read
// anew, so that it means the version that is already known.
func (p *parser) addReference(s *Schema) error {
	if !p.conflicts(s) {
		for _, t := range s.types {
			if full := t.named.name.full; p.byName[full] == nil {
				p.byName[full] = t
				p.types = append(p.types, t)
			}
		}
		return nil
	}
	for _, ref := range s.refs {
		if err := p.addReference(ref.Schema); err != nil {
			return err
		}
	}
	p.sealReferences()
	_, err := p.document(s.text)
	return err
}

// conflicts reports whether s knows a type by a name that means another here.
func (p *parser) conflicts(s *Schema) bool {
	for _, t := range s.types {
		known := p.byName[t.named.name.full]
		if known != nil && known != t && !sameDefinition(known, t) {
			return true
		}
	}
	return false
}

// sameDefinition reports whether two definitions of one name say the same, docs
// and aliases apart. Other named types are compared by name only: they are
// compared by themselves.
func sameDefinition(a, b *node) bool {
	if a == b {
		return true
	}
	return shallowText(a) == shallowText(b)
}

// shallowText prints one definition in full and the types it uses by name.
func shallowText(n *node) string {
	p := printer{only: n, writer: writer{limit: maxPrintedBytes}}
	p.node(n, "")
	return string(p.buf)
}

// describe prints a schema for an error message.
func describe(n *node) string { return shorten(describeUpTo(n, maxQuotedBytes)) }

func describeUpTo(n *node, limit int) string {
	p := printer{writer: writer{limit: limit}}
	p.node(n, "")
	return string(p.buf)
}
