package jsonschema

// combinations compares two combined nodes: the criteria, then the number of
// branches that are not duplicates, then the branches themselves.
func (p *pass) combinations(old, next *combinedBody) {
	if old.criterion != next.criterion {
		if !criterionExtended(old, next) {
			p.note("COMBINED_TYPE_CHANGED", step{})
			return
		}
		p.note("COMBINED_TYPE_EXTENDED", step{})
	}
	was, is := len(old.unique), len(next.unique)
	switch {
	case was < is && next.criterion == allOf:
		p.note("PRODUCT_TYPE_EXTENDED", step{})
	case was < is:
		p.note("SUM_TYPE_EXTENDED", step{})
	case was > is && old.criterion == allOf:
		p.note("PRODUCT_TYPE_NARROWED", step{})
	case was > is:
		p.note("SUM_TYPE_NARROWED", step{})
	}
	partners, matched := p.match(old, next)
	for i, j := range partners {
		if j >= 0 && p.record != nil {
			position := old.unique[i]
			p.descend(old.branches[position], next.branches[next.unique[j]], element(old.criterion.String(), position))
		}
	}
	if matched < min(was, is) {
		p.note("COMBINED_TYPE_SUBSCHEMAS_CHANGED", step{})
	}
}

// criterionExtended reports whether the new criterion accepts all documents that the old one
// accepted.
func criterionExtended(old, next *combinedBody) bool {
	oldSingle, newSingle := len(old.branches) == 1, len(next.branches) == 1
	return next.criterion == anyOf ||
		(oldSingle && newSingle) ||
		(oldSingle && next.criterion == oneOf) ||
		(old.criterion == allOf && newSingle)
}

// match finds a maximum matching of compatible branches. It returns for each
// old branch the new one it is matched with, or -1, and the number of matches.
func (p *pass) match(old, next *combinedBody) ([]int, int) {
	m := &matching{
		partners: filled(len(old.unique), -1),
		owners:   filled(len(next.unique), -1),
	}
	p.matchAlike(m, old, next)
	most := min(len(old.unique), len(next.unique))
	if m.size == most {
		return m.partners, m.size
	}
	if !p.c.affords(len(old.unique) * len(next.unique)) {
		return m.partners, m.size
	}
	m.edges = make([][]int, len(old.unique))
	for i, o := range old.unique {
		if p.c.err != nil {
			return m.partners, m.size
		}
		for j, n := range next.unique {
			if p.ok(old.branches[o], next.branches[n]) {
				m.edges[i] = append(m.edges[i], j)
			}
		}
	}
	if p.hasUnevaluated() {
		// Some pairs are not evaluated yet; the solver will repeat this pass.
		return m.partners, m.size
	}
	for i := range m.partners {
		if m.partners[i] >= 0 || m.size == most || p.c.err != nil {
			continue
		}
		visited := make([]bool, len(m.owners))
		if m.augment(i, visited, p.c) {
			m.size++
		}
	}
	return m.partners, m.size
}

// matchAlike pairs equal branches first, because most branches of a large union do not
// change. The maximum matching that augmenting paths find does not depend on the initial
// matching.
func (p *pass) matchAlike(m *matching, old, next *combinedBody) {
	alike := make(map[uint64]int, len(next.unique))
	for j, n := range next.unique {
		if branch := next.branches[n]; branch.src != nil {
			alike[branch.hash] = j
		}
	}
	for i, o := range old.unique {
		branch := old.branches[o]
		if branch.src == nil {
			continue
		}
		j, found := alike[branch.hash]
		if found && m.owners[j] < 0 && p.ok(branch, next.branches[next.unique[j]]) {
			m.partners[i], m.owners[j] = j, i
			m.size++
		}
	}
}

// matching is a bipartite matching that grows by augmenting paths.
type matching struct {
	edges    [][]int
	partners []int // old to new
	owners   []int // new to old
	size     int
}

// augment searches an augmenting path from an unmatched old branch to an unmatched new one,
// and flips it. It uses a stack instead of recursion, because a path can be as long as the
// number of branches.
func (m *matching) augment(start int, visited []bool, c *comparer) bool {
	type frame struct{ old, next int }
	stack := []frame{{old: start}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(m.edges[top.old]) {
			stack = stack[:len(stack)-1]
			continue
		}
		j := m.edges[top.old][top.next]
		top.next++
		c.tick()
		if visited[j] {
			continue
		}
		visited[j] = true
		if m.owners[j] >= 0 {
			stack = append(stack, frame{old: m.owners[j]})
			continue
		}
		for k := len(stack) - 1; k >= 0; k-- {
			old := stack[k].old
			taken := m.edges[old][stack[k].next-1]
			m.partners[old], m.owners[taken] = taken, old
		}
		return true
	}
	return false
}

func filled(n, with int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = with
	}
	return list
}
