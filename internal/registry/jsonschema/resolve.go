package jsonschema

import (
	"net/url"
	"strconv"
	"strings"

	"freshet/internal/registry/jsontree"
)

// resolve finds the target of ref, a reference inside s. It searches the document, then the
// registered references, then the published metaschemas. It opens no file and no socket.
func (s site) resolve(ref string) (site, error) {
	base := s.inner()
	if known, ok := s.doc.targets[linkKey{base, ref}]; ok {
		return known, nil
	}
	name, fragment, _ := strings.Cut(ref, "#")
	if name == "" {
		return s.local(ref, fragment)
	}
	absolute := join(base, name)
	for _, id := range []string{absolute, name} {
		if target, ok := s.doc.ids[id]; ok {
			return target.fragment(ref, fragment)
		}
	}
	if registered, whole := s.registered(ref, name, absolute); registered != nil {
		root := site{doc: registered, value: registered.root}
		if whole {
			return root, nil
		}
		return root.fragment(ref, fragment)
	}
	for _, id := range []string{absolute, name} {
		if address, ok := metaschemaURL(id); ok {
			return site{meta: address + "#" + fragment}, nil
		}
	}
	return site{}, unresolved(ref, "it is neither in the document nor a registered reference")
}

// local resolves a reference that is only a fragment. By the standard it refers to the
// nearest schema with an $id. If it has no target there, the whole document is searched, as
// in Confluent Schema Registry.
func (s site) local(ref, fragment string) (site, error) {
	if nearest, ok := s.doc.ids[s.inner()]; ok && nearest.value != s.doc.root {
		if target, err := nearest.fragment(ref, fragment); err == nil {
			return target, nil
		}
	}
	return site{doc: s.doc, value: s.doc.root}.fragment(ref, fragment)
}

// registered finds a reference by its name: as written, resolved against the base, or with
// both resolved; else by the $id of its schema. whole means that the name includes the
// fragment.
func (s site) registered(ref, name, absolute string) (found *document, whole bool) {
	wanted := map[string]bool{name: true, absolute: true, strings.TrimPrefix(name, "./"): true}
	s.doc.eachReference(func(r Reference) bool {
		switch {
		case wanted[r.Name] || wanted[strings.TrimSuffix(r.Name, "#")] || join(s.inner(), r.Name) == absolute:
			found = r.Schema.doc
		case r.Name == ref:
			found, whole = r.Schema.doc, true
		}
		return found == nil
	})
	if found != nil {
		return found, whole
	}
	s.doc.eachReference(func(r Reference) bool {
		if base := r.Schema.doc.base; base != "" && (base == absolute || base == name) {
			found = r.Schema.doc
		}
		return found == nil
	})
	return found, false
}

// eachReference calls visit for d's references and then for theirs, nearest first, until
// visit returns false. References of references can be used by their names too.
func (d *document) eachReference(visit func(Reference) bool) {
	seen := map[*document]bool{d: true}
	for queue := []*document{d}; len(queue) > 0; queue = queue[1:] {
		for _, r := range queue[0].refs {
			if !visit(r) {
				return
			}
			if !seen[r.Schema.doc] {
				seen[r.Schema.doc] = true
				queue = append(queue, r.Schema.doc)
			}
		}
	}
}

// fragment resolves a fragment in the schema at s: a JSON pointer or an anchor.
func (s site) fragment(ref, fragment string) (site, error) {
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	if fragment == "" || fragment == "/" {
		return s, nil
	}
	if !strings.HasPrefix(fragment, "/") {
		return s.anchor(ref, fragment)
	}
	target, err := s.pointer(ref, fragment)
	if err == nil {
		return target, nil
	}
	// In any draft, $defs can be used to refer to definitions.
	if rest, ok := strings.CutPrefix(fragment, "/$defs/"); ok {
		if bridged, second := s.pointer(ref, "/definitions/"+rest); second == nil {
			return bridged, nil
		}
	}
	return site{}, err
}

func (s site) anchor(ref, anchor string) (site, error) {
	if target, ok := s.doc.anchors[s.inner()+"#"+anchor]; ok {
		return target, nil
	}
	if target, ok := s.doc.anchors[s.doc.base+"#"+anchor]; ok {
		return target, nil
	}
	return site{}, unresolved(ref, "the anchor does not exist")
}

var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

func (s site) pointer(ref, fragment string) (site, error) {
	for token := range strings.SplitSeq(fragment[1:], "/") {
		if strings.Contains(token, "~") {
			token = unescapePointer.Replace(token)
		}
		var next *jsontree.Value
		base := s.base
		switch s.value.Kind {
		case jsontree.Object:
			base = s.inner()
			next = s.value.Get(token)
		case jsontree.Array:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < s.value.Len() {
				next = &s.value.List.Values[i]
			}
		}
		if next == nil {
			return site{}, unresolved(ref, strconv.Quote(clip(token, 100))+" does not exist")
		}
		s = site{doc: s.doc, value: next, base: base}
	}
	if s.value.Kind != jsontree.Object && !s.value.IsBool() {
		return site{}, unresolved(ref, "it does not lead to a schema")
	}
	return s, nil
}

// join resolves a relative name against a base by RFC 3986. It returns the name unchanged if
// either is not a URI.
func join(base, name string) string {
	if base == "" {
		return strings.TrimPrefix(name, "./")
	}
	b, baseErr := url.Parse(base)
	n, nameErr := url.Parse(name)
	if baseErr != nil || nameErr != nil || b.Opaque != "" && !n.IsAbs() {
		return name
	}
	if !b.IsAbs() && b.Host == "" && !strings.HasPrefix(b.Path, "/") && !n.IsAbs() && n.Host == "" {
		// net/url makes a relative base absolute, so remove the leading slash again.
		rooted := *b
		rooted.Path = "/" + rooted.Path
		joined := rooted.ResolveReference(n).String()
		if !strings.HasPrefix(n.Path, "/") {
			joined = strings.TrimPrefix(joined, "/")
		}
		return joined
	}
	return b.ResolveReference(n).String()
}
