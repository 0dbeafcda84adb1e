package jsonschema

import (
	"strconv"
	"strings"
)

const (
	// maxDifferences limits the number of compatible and of incompatible differences in
	// the report, because references can multiply a few differences without limit.
	maxDifferences = 5000
	// maxVisits limits the walk that collects them, and maxPath the steps of a path that
	// are printed.
	maxVisits = 200_000
	maxPath   = 200
)

// record has the results of the rules for one pair: its own differences, and the pairs below
// whose differences it includes, in the order of the rules.
type record struct {
	entries []entry
	above   []*record
	differs bool // there is a difference here or below
}

// entry is a difference, or a pair below.
type entry struct {
	change     change
	compatible bool
	at, below  step
	pair       pair
	record     *record
}

// differences lists every difference below the root. A pair that contains itself is reported
// once on each path.
func (c *comparer) differences(root pair) []Difference {
	top := c.records(root)
	if c.err != nil || !top.differs {
		return nil
	}
	r := &reporter{onPath: map[*record]bool{}}
	r.walk(top)
	if c.states[root].incompatible && r.incompatible == 0 {
		r.shortest(top)
	}
	return r.differences
}

// records applies the rules again to every pair that is reachable from the root, now that
// all results are known, and marks the pairs that have differences.
func (c *comparer) records(root pair) *record {
	known := map[pair]*record{}
	var queue []pair
	reach := func(at pair) *record {
		r, ok := known[at]
		if !ok {
			r = &record{}
			known[at] = r
			queue = append(queue, at)
		}
		return r
	}
	top := reach(root)
	var pending []*record
	for i := 0; i < len(queue) && c.err == nil; i++ {
		r := known[queue[i]]
		p := &pass{c: c, record: r}
		p.apply(queue[i].old, queue[i].next)
		for k := range r.entries {
			e := &r.entries[k]
			if e.change == "" {
				e.record = reach(e.pair)
				e.record.above = append(e.record.above, r)
			} else if !r.differs {
				r.differs = true
				pending = append(pending, r)
			}
		}
	}
	for len(pending) > 0 {
		r := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, above := range r.above {
			if !above.differs {
				above.differs = true
				pending = append(pending, above)
			}
		}
	}
	return top
}

type reporter struct {
	differences              []Difference
	compatible, incompatible int
	path                     []string
	onPath                   map[*record]bool
}

// walk collects differences depth first. It uses a stack instead of recursion, because a
// path can be as long as the number of pairs.
func (r *reporter) walk(top *record) {
	type frame struct {
		record *record
		next   int
		length int // of the path above
	}
	stack := []frame{{record: top}}
	r.onPath[top] = true
	for visits := 0; len(stack) > 0 && visits < maxVisits; {
		f := &stack[len(stack)-1]
		if f.next == len(f.record.entries) {
			delete(r.onPath, f.record)
			r.path = r.path[:f.length]
			stack = stack[:len(stack)-1]
			continue
		}
		e := f.record.entries[f.next]
		f.next++
		switch {
		case e.change != "":
			r.add(e)
		case e.record.differs && !r.onPath[e.record]:
			visits++
			stack = append(stack, frame{record: e.record, length: len(r.path)})
			r.onPath[e.record] = true
			r.path = e.below.append(r.path)
		}
	}
}

func (r *reporter) add(e entry) {
	count := &r.incompatible
	if e.compatible {
		count = &r.compatible
	}
	if *count == maxDifferences {
		return
	}
	*count++
	path := r.path[:len(r.path):len(r.path)]
	if len(path) > maxPath {
		// Only references can make a path so long. Print its beginning and its end.
		path = append(append(path[:maxPath/2:maxPath/2], "..."), path[len(path)-maxPath/2:]...)
	}
	path = e.below.append(e.at.append(path))
	r.differences = append(r.differences, Difference{
		Type:       string(e.change),
		Path:       "#/" + strings.Join(path, "/"),
		Compatible: e.compatible,
	})
}

// shortest adds the incompatible difference that is nearest to the top. It is called if the
// walk ended early, so that the report of incompatible schemas has at least one.
func (r *reporter) shortest(top *record) {
	type origin struct {
		from *record
		step step
	}
	origins := map[*record]origin{top: {}}
	for queue := []*record{top}; len(queue) > 0; queue = queue[1:] {
		for _, e := range queue[0].entries {
			if e.change != "" && !e.compatible {
				var steps []step
				for at := queue[0]; at != top; at = origins[at].from {
					steps = append(steps, origins[at].step)
				}
				r.path = nil
				for i := len(steps) - 1; i >= 0; i-- {
					r.path = steps[i].append(r.path)
				}
				r.add(e)
				return
			}
			if e.change == "" {
				if _, seen := origins[e.record]; !seen {
					origins[e.record] = origin{queue[0], e.below}
					queue = append(queue, e.record)
				}
			}
		}
	}
}

// append adds the step to a path.
func (s step) append(path []string) []string {
	if s.none() {
		return path
	}
	path = append(path, s.keyword)
	switch s.form {
	case stepIndex:
		path = append(path, strconv.Itoa(s.index))
	case stepName:
		path = append(path, s.name)
	}
	return path
}
