package avro

// addReferences makes the types of the references known, in the order listed.
// As in Java every text is read once, and the first that comes under a name
// wins, also when it is a reference of a reference.
func (p *parser) addReferences(refs []Reference) error {
	for _, ref := range refs {
		if ref.Schema == nil {
			return invalid("No schema reference found for %q", ref.Name)
		}
		if !p.firstUse(ref) {
			continue
		}
		if err := p.addReference(ref.Schema); err != nil {
			return err
		}
	}
	return nil
}

// firstUse reports whether a reference comes for the first time under its name.
func (p *parser) firstUse(ref Reference) bool {
	if _, seen := p.references[ref.Name]; seen && ref.Name != "" {
		return false
	}
	p.references[ref.Name] = struct{}{}
	return true
}

// addReference makes the types of one referenced schema known. Where one of
// them already means another version, the text is read anew, so that it means
// the version that is known.
func (p *parser) addReference(s *Schema) error {
	if p.conflicts(s) {
		if err := p.addReferences(s.refs); err != nil {
			return err
		}
		p.sealReferences()
		_, err := p.document(s.text)
		return err
	}
	p.adopt(s)
	for _, t := range s.types {
		if full := t.named.name.full; p.byName[full] == nil {
			p.byName[full] = t
			p.types = append(p.types, t)
		}
	}
	return nil
}

// adopt counts the references of a schema as used.
func (p *parser) adopt(s *Schema) {
	for _, ref := range s.refs {
		if ref.Name != "" && p.firstUse(ref) {
			p.adopt(ref.Schema)
		}
	}
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
	p := printer{only: n, Writer: newWriter(maxPrintedBytes)}
	p.node(n, "")
	return string(p.Buf)
}

// describe prints a schema for an error message.
func describe(n *node) string { return shorten(describeUpTo(n, maxQuotedBytes)) }

func describeUpTo(n *node, limit int) string {
	p := printer{Writer: newWriter(limit)}
	p.node(n, "")
	return string(p.Buf)
}
