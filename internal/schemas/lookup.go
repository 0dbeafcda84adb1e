package schemas

import "context"

// Lookup finds the version of a subject that has this schema.
func (r *Registry) Lookup(ctx context.Context, name string, d *Draft, deleted bool) (Version, error) {
	if err := CheckSubject(name); err != nil {
		return Version{}, err
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return Version{}, err
	}
	sub, ok := st.visible(name, deleted)
	if !ok {
		return Version{}, subjectNotFound(name)
	}
	p, err := r.prepare(ctx, st, name, d, preparing{deleted: true})
	if err != nil {
		return Version{}, err
	}
	v, found, err := r.match(ctx, st, sub, p, deleted)
	if err != nil {
		return Version{}, err
	}
	if !found {
		return Version{}, schemaNotFound()
	}
	return v, nil
}

// match finds a prepared schema in a subject: by identity, or else, for a
// schema without references, among those that say the same with references.
func (r *Registry) match(ctx context.Context, st *state, sub *subject, p *prepared, deleted bool) (Version, bool, error) {
	if sub == nil {
		return Version{}, false, nil
	}
	if v, ok := st.holding(sub.name, st.idsOf(p.sum), deleted); ok {
		return v, true, nil
	}
	return r.matchResolved(ctx, st, sub, p, deleted)
}

// matchResolved compares with references written out. Java's Avro serializer
// relies on it: it sends the schema of a class in one piece, whatever
// references it was registered with.
func (r *Registry) matchResolved(ctx context.Context, st *state, sub *subject, p *prepared, deleted bool) (Version, bool, error) {
	sent, ok := p.form.(avroForm)
	if !ok || len(p.refs) > 0 {
		return Version{}, false, nil
	}
	whole := ""
	for i := len(sub.versions) - 1; i >= 0; i-- {
		e := sub.versions[i]
		if e.schema.Type != Avro || len(e.schema.References) == 0 || (e.deleted && !deleted) {
			continue
		}
		if whole == "" {
			whole = sent.resolved()
		}
		f, err := r.stored(ctx, st, e.schema)
		if ctx.Err() != nil {
			return Version{}, false, ctx.Err()
		}
		if known, ok := f.(avroForm); err == nil && ok && known.resolved() == whole {
			return sub.version(e), true, nil
		}
	}
	return Version{}, false, nil
}
