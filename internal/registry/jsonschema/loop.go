package jsonschema

import "errors"

// errLoop is the error of a schema that refers to itself, so that a validator would not
// terminate.
var errLoop = errors.New("reference leads back to itself through $ref and allOf alone")

// checkLoops rejects nodes that refer to themselves. It follows only references and
// allOf: a loop through a property or an item ends with the value, and a loop through anyOf
// or oneOf may end. Every loop contains a reference, so the search starts at the references.
func (b *builder) checkLoops() error {
	const (
		underWay = 1
		done     = 2
	)
	state := map[*node]int{}
	for _, start := range b.refs {
		// A stack instead of recursion, because the graph can be as deep as the text is long.
		for stack := []*node{start}; len(stack) > 0; {
			n := stack[len(stack)-1]
			if state[n] != 0 {
				stack = stack[:len(stack)-1]
				state[n] = done
				continue
			}
			state[n] = underWay
			for _, next := range n.requiredSchemas() {
				switch state[next] {
				case underWay:
					return errLoop
				case 0:
					stack = append(stack, next)
				}
			}
		}
	}
	return nil
}

// requiredSchemas lists the schemas that every value of n must satisfy.
func (n *node) requiredSchemas() []*node {
	switch {
	case n.kind == kindRef:
		return []*node{n.ref.target}
	case n.kind == kindCombined && n.combined.criterion == allOf:
		return n.combined.branches
	}
	return nil
}
