package schemas

import (
	"context"
)

// DiffOperand is one of the two schemas of a diff: a version of a subject, or a draft.
type DiffOperand struct {
	Subject string
	Version VersionID
	Draft   *Draft // when set, Version is ignored
}

// Diff is the result of the comparison of two schemas.
type Diff struct {
	Changes  []Change `json:"changes"`
	Backward Reading  `json:"backward"` // the second schema reads data of the first
	Forward  Reading  `json:"forward"`  // the first schema reads data of the second
	// Levels are the levels that allow the second schema to follow the first.
	Levels []string `json:"levels"`
}

// Reading reports whether one schema can read the data of another.
type Reading struct {
	Compatible bool     `json:"compatible"`
	Problems   []string `json:"problems"`
}

// Diff compares two schemas, independently of the levels of their subjects.
func (r *Registry) Diff(ctx context.Context, from, to DiffOperand) (*Diff, error) {
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	work := r.newJob(ctx)
	old, oldType, err := r.parseOperand(work, st, from)
	if err != nil {
		return nil, err
	}
	next, nextType, err := r.parseOperand(work, st, to)
	if err != nil {
		return nil, err
	}
	d := &Diff{Changes: []Change{}}
	if oldType != nextType {
		d.Changes = []Change{{Type: "SCHEMA_TYPE_CHANGED", Text: differentType}}
		d.Backward.Problems, d.Forward.Problems = []string{differentType}, []string{differentType}
		d.Levels = []string{}
		return d, nil
	}
	err = work.do(len(old.canonical())+len(next.canonical()), func() error { return d.compare(old, next, work.Spend) })
	if err != nil {
		return nil, asInvalidSchema(err)
	}
	return d, nil
}

func (d *Diff) compare(old, next parsedSchema, spend spendFunc) error {
	changes, err := next.changes(old, spend)
	if err != nil {
		return err
	}
	d.Changes = append(d.Changes, changes...)
	if d.Backward.Problems, err = old.problems(next, newReadsOld, spend); err != nil {
		return err
	}
	if d.Forward.Problems, err = next.problems(old, oldReadsNew, spend); err != nil {
		return err
	}
	for _, side := range []*Reading{&d.Backward, &d.Forward} {
		side.Compatible = len(side.Problems) == 0
		side.Problems = append([]string{}, side.Problems...)
	}
	for _, l := range Levels() {
		if l != AlwaysIncompatible && (d.Backward.Compatible || !l.backward()) &&
			(d.Forward.Compatible || !l.forward()) {
			d.Levels = append(d.Levels, l.String())
		}
	}
	return nil
}

// parseOperand parses one of the two schemas of a diff and returns its type.
func (r *Registry) parseOperand(w *job, st *state, s DiffOperand) (parsedSchema, Type, error) {
	if s.Draft != nil {
		p, err := r.prepare(w, st, s.Subject, s.Draft, prepareOptions{})
		if err != nil {
			return nil, 0, err
		}
		return p.parsed, p.typ, nil
	}
	v, err := st.version(s.Subject, s.Version, true)
	if err != nil {
		return nil, 0, err
	}
	f, err := r.stored(w, st, v.Schema)
	if err != nil {
		return nil, 0, asInvalidSchema(err)
	}
	return f, v.Schema.Type, nil
}
