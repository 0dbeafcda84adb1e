package web

import (
	"net/http"
	"slices"
	"strings"
)

// Route is a method, a pattern and a value of the surface, such as a handler.
type Route[T any] struct {
	// Method is the method of the route, "" for every method.
	Method string
	// Pattern is the path in segments: a word matches itself, {name} any one segment, and
	// "..." at the end any number of segments, including none.
	Pattern string
	Value   T

	names   []string // names of the parameters
	indices []int    // segments of the parameters
}

// Param returns the value of a parameter, "" if the route does not have it.
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

// Router finds routes. If several match, the most specific one wins: from left to right,
// a word before a parameter with a set of values, before a parameter, before "...". A
// route with another method does not hide a less specific route with the right method.
//
// It is a tree of segments and parses only as much of a path as it needs; see
// BenchmarkRouter.
type Router[T any] struct {
	root   node[T]
	routes []*Route[T]
}

// node is a node of the tree.
type node[T any] struct {
	words      []branch[T]
	restricted []branch[T] // parameters with a set of values
	any        *node[T]    // parameter with any value
	routes     []*Route[T] // routes that end here
	tails      []*Route[T] // routes that end here with "..."
}

type branch[T any] struct {
	values []string
	next   *node[T]
}

const tailPattern = "..."

// NewRouter returns a router. values restricts parameters, by name, to a set of values.
// It panics if two routes have the same method and path.
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
		if s == tailPattern {
			list = &at.tails
			break
		}
		if name, ok := strings.CutPrefix(s, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			r.names, r.indices = append(r.names, name), append(r.indices, i)
			at = at.parameter(values[name])
		} else if s != "" || i < len(segments)-1 {
			at = childOf(&at.words, []string{s})
		}
		list = &at.routes
	}
	if slices.ContainsFunc(*list, func(other *Route[T]) bool { return other.Method == r.Method }) {
		panic("web: two routes for " + r.Method + " " + r.Pattern)
	}
	*list = append(*list, r)
	t.routes = append(t.routes, r)
}

func (n *node[T]) parameter(values []string) *node[T] {
	if values != nil {
		return childOf(&n.restricted, values)
	}
	if n.any == nil {
		n.any = &node[T]{}
	}
	return n.any
}

// childOf returns the node of a branch; it creates both if they do not exist.
func childOf[T any](branches *[]branch[T], values []string) *node[T] {
	for _, b := range *branches {
		if slices.Equal(b.values, values) {
			return b.next
		}
	}
	next := &node[T]{}
	*branches = append(*branches, branch[T]{values, next})
	return next
}

// Find returns the route of a path, nil if no route matches.
func (t *Router[T]) Find(method string, p *Path) *Route[T] { return t.root.find(method, p, 0) }

func (n *node[T]) find(method string, p *Path, depth int) *Route[T] {
	segment, ok := p.at(depth)
	if !ok {
		if p.Len() == depth && p.complete() {
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
			break // a word has only one branch
		}
	}
	for i := range n.restricted {
		if b := &n.restricted[i]; slices.Contains(b.values, segment) {
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

// Allowed returns the methods of a path in the form of the Allow header; "" if the path
// does not exist.
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

// MethodOf returns the method to find a route with, on a surface where HEAD is served as
// GET without the body.
func MethodOf(r *http.Request) string {
	if r.Method == http.MethodHead {
		return http.MethodGet
	}
	return r.Method
}
