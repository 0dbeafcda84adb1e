package jsonschema

import "errors"

// errLoop is a schema that every validator would follow for ever: what it says
// of a value is what it says of that value.
var errLoop = errors.New("a reference leads back to itself through $ref and allOf alone")

// checkLoops refuses nodes that mean themselves. Loops that go through a
// property or an item end with the value, and those through anyOf and the like
// may; so only references and allOf are followed. Without a reference there is
// no loop, so it is enough to begin at each.
func (b *builder) checkLoops() error {
	const (
		underWay = 1
		done     = 2
	)
	state := map[*node]int{}
	for _, start := range b.refs {
		// A stack and not recursion: the graph can be as deep as the text is long.
		for stack := []*node{start}; len(stack) > 0; {
			n := stack[len(stack)-1]
			if state[n] != 0 {
				stack = stack[:len(stack)-1]
				state[n] = done
				continue
			}
			state[n] = underWay
			for _, next := range n.alsoMeans() {
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

// alsoMeans lists the schemas that a value must satisfy, too, to satisfy n.
func (n *node) alsoMeans() []*node {
	switch {
	case n.kind == kindRef:
		return []*node{n.ref.target}
	case n.kind == kindCombined && n.combined.criterion == allOf:
		return n.combined.branches
	}
	return nil
}
