package avro

// addReferences registers the types of the references, in their order. As in Java, each text
// is read once, and the first reference of a name is used, even if it is a reference of a
// reference.
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

// firstUse reports whether a reference is the first of its name.
func (p *parser) firstUse(ref Reference) bool {
	if _, seen := p.references[ref.Name]; seen && ref.Name != "" {
		return false
	}
	p.references[ref.Name] = struct{}{}
	return true
}

// addReference registers the types of one referenced schema. If another version of one of
// them is registered, the text is parsed again, so that it uses the registered version.
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

// adopt marks the references of a schema as used.
func (p *parser) adopt(s *Schema) {
	for _, ref := range s.refs {
		if ref.Name != "" && p.firstUse(ref) {
			p.adopt(ref.Schema)
		}
	}
}

// conflicts reports whether s has a type whose name is registered with another definition.
func (p *parser) conflicts(s *Schema) bool {
	for _, t := range s.types {
		known := p.byName[t.named.name.full]
		if known != nil && known != t && !sameDefinition(known, t) {
			return true
		}
	}
	return false
}

// sameDefinition reports whether two definitions of one name are equal, except for docs and
// aliases. It compares the named types that they use by name only, because these are
// compared separately.
func sameDefinition(a, b *node) bool {
	if a == b {
		return true
	}
	return shallowText(a) == shallowText(b)
}

// shallowText prints one definition in full, and the types that it uses by name.
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
