package web

import (
	"net/http"
	"slices"
	"strings"
)

// Route is a place of a surface: a method, a pattern, and what the surface
// keeps for it.
type Route[T any] struct {
	// Method is the one it serves, "" for every method.
	Method string
	// Pattern is the path in segments: a word stands for itself, {name} for any
	// one segment, and "..." at the end for everything beneath, or nothing.
	Pattern string
	Value   T

	names   []string // of its parameters
	indices []int    // of their segments
}

// Param returns the segment that the route calls so, "" when it has none.
func (r *Route[T]) Param(p *Path, name string) string {
	for i, n := range r.names {
		if n == name {
			return p.Segment(r.indices[i])
		}
	}
	return ""
}

// Params lists the names of the parameters, in the order of the path.
func (r *Route[T]) Params() []string { return r.names }

// Router finds routes. Where several fit, the most specific one wins: from left
// to right a word before a parameter with given values, before a parameter,
// before "...". A route with another method does not stand in the way of a less
// specific one that serves it. What it means that there is none is the
// surface's business.
//
// It is a tree of segments, and looks at no more of a path than it needs:
// BenchmarkRouter.
type Router[T any] struct {
	root   node[T]
	routes []*Route[T]
}

// node is a place in the tree, reached by the segments before it.
type node[T any] struct {
	words  []branch[T]
	given  []branch[T] // parameters that take some values only
	any    *node[T]    // a parameter
	routes []*Route[T] // that end here
	tails  []*Route[T] // that end here with "..."
}

type branch[T any] struct {
	values []string
	next   *node[T]
}

const everything = "..."

// NewRouter makes a router. values limits parameters, by name, to some words.
// Two routes for the same method and path are a mistake, and panic.
func NewRouter[T any](routes []Route[T], values map[string][]string) *Router[T] {
	t := &Router[T]{}
	for _, r := range routes {
		t.add(&r, values)
	}
	return t
}

func (t *Router[T]) add(r *Route[T], values map[string][]string) {
	at := &t.root
	segments := strings.Split(strings.TrimPrefix(r.Pattern, "/"), "/")
	list := &at.routes
	for i, s := range segments {
		if s == everything {
			list = &at.tails
			break
		}
		if name, ok := strings.CutPrefix(s, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			r.names, r.indices = append(r.names, name), append(r.indices, i)
			at = at.parameter(values[name])
		} else if s != "" || i < len(segments)-1 {
			at = follow(&at.words, []string{s})
		}
		list = &at.routes
	}
	if slices.ContainsFunc(*list, func(other *Route[T]) bool { return other.Method == r.Method }) {
		panic("web: there are two routes for " + r.Method + " " + r.Pattern)
	}
	*list = append(*list, r)
	t.routes = append(t.routes, r)
}

func (n *node[T]) parameter(values []string) *node[T] {
	if values != nil {
		return follow(&n.given, values)
	}
	if n.any == nil {
		n.any = &node[T]{}
	}
	return n.any
}

// follow returns the node behind a branch, and makes both when they are new.
func follow[T any](branches *[]branch[T], values []string) *node[T] {
	for _, b := range *branches {
		if slices.Equal(b.values, values) {
			return b.next
		}
	}
	next := &node[T]{}
	*branches = append(*branches, branch[T]{values, next})
	return next
}

// Find returns the route of a path, nil when there is none.
func (t *Router[T]) Find(method string, p *Path) *Route[T] { return t.root.find(method, p, 0) }

func (n *node[T]) find(method string, p *Path, depth int) *Route[T] {
	segment, ok := p.at(depth)
	if !ok {
		if p.Len() == depth && p.whole() {
			if r := pick(n.routes, method); r != nil {
				return r
			}
		}
		return pick(n.tails, method)
	}
	for i := range n.words {
		if b := &n.words[i]; b.values[0] == segment {
			if r := b.next.find(method, p, depth+1); r != nil {
				return r
			}
			break // there is no second branch for a word
		}
	}
	for i := range n.given {
		if b := &n.given[i]; slices.Contains(b.values, segment) {
			if r := b.next.find(method, p, depth+1); r != nil {
				return r
			}
		}
	}
	if n.any != nil {
		if r := n.any.find(method, p, depth+1); r != nil {
			return r
		}
	}
	return pick(n.tails, method)
}

func pick[T any](routes []*Route[T], method string) *Route[T] {
	for _, r := range routes {
		if r.Method == method || r.Method == "" {
			return r
		}
	}
	return nil
}

// Allowed lists the methods that a path does have, in the form of the header
// Allow; "" when there is nothing at the path.
func (t *Router[T]) Allowed(p *Path) string {
	var methods []string
	for _, r := range t.routes {
		if r.Method != "" && !slices.Contains(methods, r.Method) && t.Find(r.Method, p) != nil {
			methods = append(methods, r.Method)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// MethodOf is the method to find a route for on a surface where HEAD is GET
// without the body.
func MethodOf(r *http.Request) string {
	if r.Method == http.MethodHead {
		return http.MethodGet
	}
	return r.Method
}
