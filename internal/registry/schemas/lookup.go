package schemas

import "context"

// Lookup returns the version of a subject that has this schema.
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
	work := r.newJob(ctx)
	p, err := r.prepare(work, st, name, d, prepareOptions{deleted: true})
	if err != nil {
		return Version{}, err
	}
	v, found, err := r.match(work, st, sub, p, deleted)
	if err != nil {
		return Version{}, err
	}
	if !found {
		return Version{}, schemaNotFound()
	}
	return v, nil
}

// match finds the version of a subject that has a prepared schema: by identity,
// or else, for an Avro schema without references, among the schemas that are
// equal when their references are replaced by definitions.
func (r *Registry) match(w *job, st *state, sub *subject, p *prepared, deleted bool) (Version, bool, error) {
	if sub == nil {
		return Version{}, false, nil
	}
	if v, ok := st.versionWith(sub.name, st.idsOf(p.sum), deleted); ok {
		return v, true, nil
	}
	return r.matchResolved(w, st, sub, p, deleted)
}

// bytesPerStep is the number of bytes of a resolved schema that count as one step.
const bytesPerStep = 16

// matchResolved compares schemas whose references are replaced by definitions. The
// Avro serializer for Java needs this: it sends the schema of a class without
// references, even if the schema was registered with references.
func (r *Registry) matchResolved(w *job, st *state, sub *subject, p *prepared, deleted bool) (Version, bool, error) {
	sent, ok := p.parsed.(avroSchema)
	if !ok || len(p.refs) > 0 {
		return Version{}, false, nil
	}
	whole := ""
	for i := len(sub.versions) - 1; i >= 0; i-- {
		e := sub.versions[i]
		if e.schema.Type != Avro || len(e.schema.References) == 0 || (e.deleted && !deleted) {
			continue
		}
		f, err := r.stored(w, st, e.schema)
		if err != nil && isTransient(err) {
			return Version{}, false, err
		}
		known, ok := f.(avroSchema)
		if err != nil || !ok {
			continue
		}
		same := false
		err = w.do(len(p.text)+len(e.schema.body), func() error {
			if whole == "" {
				whole = sent.resolved()
			}
			written := known.resolved()
			same = written == whole
			return w.Spend(1 + (len(written)+len(whole))/bytesPerStep)
		})
		if err != nil && isTransient(err) {
			return Version{}, false, err
		}
		if err != nil {
			return Version{}, false, reject(ErrInvalidSchema, "Invalid schema, details: %s", err.Error())
		}
		if same {
			return sub.version(e), true, nil
		}
	}
	return Version{}, false, nil
}
