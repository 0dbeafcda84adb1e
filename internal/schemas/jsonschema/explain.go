package jsonschema

import (
	"fmt"
	"slices"
)

// explainer finds out why a document does not conform, by walking down those
// schemas that must all hold. It is written for people: it stops at the first
// fault of each kind, and does not guess which branch of a union was meant.
type explainer struct {
	c     *checker
	found []string
}

func (e *explainer) add(path []string, format string, args ...any) {
	const most = 5
	if len(e.found) < most {
		e.found = append(e.found, fmt.Sprintf("at '%s': %s", pointer(path), fmt.Sprintf(format, args...)))
	}
}

// maxExplained bounds how far down it goes.
const maxExplained = 200

func (e *explainer) explain(s site, v *value, path []string) {
	if len(path) > maxExplained || s.meta != "" {
		e.add(path, "does not conform")
		return
	}
	if s.value.kind != objectValue {
		e.add(path, "nothing is allowed here")
		return
	}
	if ref, ok := s.value.str("$ref"); ok {
		target, err := s.resolve(ref)
		if err == nil && e.c.nesting < maxExplained && !e.c.eval(target, v, nil) {
			e.c.nesting++
			e.explain(target, v, path)
			e.c.nesting--
			return
		}
		if !s.doc.draft.modern() {
			e.add(path, "does not conform")
			return
		}
	}
	if keyword := e.c.violated(s, v); keyword != "" {
		e.add(path, "violates %q: %s", keyword, clip(emit(s.value.get(keyword)), 200))
		return
	}
	if all := s.value.get("allOf"); all != nil && e.c.nesting < maxExplained {
		for _, schema := range all.items {
			if !e.c.eval(s.sub(schema), v, nil) {
				e.c.nesting++
				e.explain(s.sub(schema), v, path)
				e.c.nesting--
				return
			}
		}
	}
	var seen *marks
	if s.doc.draft.modern() {
		seen = newMarks(v)
	}
	if keyword := e.c.inPlace(s, v, seen); keyword != "" {
		e.add(path, "violates %q", keyword)
		return
	}
	f := e.c.inside(s, v, seen)
	if keyword := s.leftover(v); f == nil && keyword != "" {
		f = e.c.unevaluated(s, keyword, v, seen)
	}
	switch {
	case f == nil:
		e.add(path, "does not conform")
	case f.value == nil:
		e.add(path, "violates %q", f.keyword)
	default:
		e.explain(f.schema, f.value, append(slices.Clip(path), f.token))
	}
}
