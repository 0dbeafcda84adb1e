package schemas

import (
	"context"
	"errors"
	"time"

	"freshet/internal/storage/statemachine"
)

// errStale means that the state has changed since a decision was prepared, so that
// the preparation must be repeated.
var errStale = errors.New("subject changed in the meantime")

// A registration is repeated when its subject has changed in the meantime. After
// the first attempts it is checked again in the write lock instead, unless the check
// is too costly there.
const (
	optimisticAttempts = 3  // attempts without a check in the write lock
	maxAttempts        = 20 // attempts of a registration, or of a batch of an import
)

// Registered is the result of a registration.
type Registered struct {
	ID      int32
	Version int32
	New     bool // the registration created the version
}

// Register adds a schema as the next version of a subject. If the subject has the
// schema already, Register returns that version and writes nothing.
func (r *Registry) Register(ctx context.Context, name string, d *Draft) (Registered, error) {
	if err := CheckSubject(name); err != nil {
		return Registered{}, err
	}
	work := r.newJob(ctx)
	for attempt := range maxAttempts {
		st, err := r.machine.Fresh(ctx)
		if err != nil {
			return Registered{}, err
		}
		reg := &registration{r: r, work: work, name: name, draft: d, checkInLock: attempt >= optimisticAttempts}
		done, err := reg.prepare(st)
		if err != nil || done {
			return reg.result, err
		}
		err = reg.commit(ctx, st)
		if errors.Is(err, errStale) {
			continue
		}
		return reg.result, err
	}
	return Registered{}, statemachine.ErrContended
}

// commit writes the prepared registration if the quotas allow it.
func (reg *registration) commit(ctx context.Context, st *state) error {
	subjects, bytes := reg.needs(st)
	taken, err := reg.r.reserve(ctx, subjects, bytes)
	if err != nil {
		return err
	}
	defer taken.release()
	_, err = reg.r.machine.Update(context.WithoutCancel(ctx), reg.decideLocked)
	return err
}

// registration is one attempt to register a schema. It is prepared before the write
// lock is taken, and decided while the lock is held.
type registration struct {
	r           *Registry
	work        *job
	name        string
	draft       *Draft
	checkInLock bool // check again in the write lock if the subject has changed

	schema *prepared
	mode   Mode     // at the time of the preparation
	base   *subject // at the time of the preparation; the check is valid while it is unchanged

	result Registered
}

// prepare parses and checks the draft in a state. done means that nothing has to be
// written.
func (reg *registration) prepare(st *state) (done bool, err error) {
	importing := st.mode == Import && reg.draft.ID > 0
	reg.schema, err = reg.r.prepare(reg.work, st, reg.name, reg.draft, prepareOptions{imported: importing})
	if err != nil {
		return false, err
	}
	reg.mode = st.mode
	reg.base, _ = st.subjects.Get(reg.name)
	return reg.examine(st)
}

// examine finds the schema in the subject, or returns an error if it may not be
// added. done means that the subject has the schema already.
func (reg *registration) examine(st *state) (done bool, err error) {
	v, found, err := reg.r.match(reg.work, st, reg.base, reg.schema, false)
	if err != nil {
		return false, err
	}
	if e, ok := reg.requestedVersion(reg.base); ok {
		v, found = reg.base.version(e), true
	}
	if found && reg.satisfiedBy(v) {
		reg.result = Registered{ID: v.Schema.ID, Version: v.Version}
		return true, nil
	}
	if err := reg.permitted(st); err != nil {
		return false, err
	}
	if st.mode == Import {
		return false, nil
	}
	if n := reg.draft.Version; n > 0 && n != reg.base.next() {
		return false, invalidSchema(reg.name, reg.draft, "Version is not one more than previous version")
	}
	if found {
		// The client requested the next number, but the subject has the schema.
		reg.result = Registered{ID: v.Schema.ID, Version: v.Version}
		return true, nil
	}
	return false, reg.compatible(st)
}

// requestedVersion returns the active version with the number that the client requested, if
// it has the schema. Other versions of the subject can have the same schema.
func (reg *registration) requestedVersion(sub *subject) (versionEntry, bool) {
	if sub == nil || reg.draft.Version <= 0 {
		return versionEntry{}, false
	}
	e, ok := sub.entry(VersionID(reg.draft.Version), false)
	return e, ok && e.schema.sum == reg.schema.sum
}

// satisfiedBy reports whether a version has the id and number that the client
// requested.
func (reg *registration) satisfiedBy(v Version) bool {
	return (reg.draft.ID <= 0 || reg.draft.ID == v.Schema.ID) &&
		(reg.draft.Version <= 0 || reg.draft.Version == v.Version)
}

// permitted returns an error if the mode does not allow the registration.
func (reg *registration) permitted(st *state) error {
	switch {
	case st.mode.readOnly():
		return readOnly(reg.name)
	case st.mode == Import && reg.draft.ID <= 0:
		return notInReadWriteMode(reg.name)
	case st.mode != Import && reg.draft.ID > 0:
		return notInImportMode(reg.name)
	}
	return nil
}

func (reg *registration) compatible(st *state) error {
	level := st.level(reg.name)
	messages, err := reg.r.check(reg.work, st, reg.name, level, reg.schema, versionsToCheck(reg.base, level))
	if err != nil {
		return err
	}
	if len(messages) > 0 {
		return incompatible(reg.name, messages)
	}
	return nil
}

// decideLocked runs in the write lock. It uses the result of prepare if the mode, the
// targets of the references and the subject have not changed since.
func (reg *registration) decideLocked(st *state) ([][]byte, error) {
	sub, _ := st.subjects.Get(reg.name)
	if st.mode != reg.mode || !reg.schema.targetsUnchanged(st) {
		return nil, errStale
	}
	if sub != reg.base {
		if v, ok := st.versionWith(reg.name, st.idsOf(reg.schema.sum), false); ok && reg.satisfiedBy(v) {
			reg.result = Registered{ID: v.Schema.ID, Version: v.Version}
			return nil, nil
		}
		if !reg.checkInLock {
			return nil, errStale
		}
		reg.base, reg.work = sub, reg.work.inLock()
		if done, err := reg.examine(st); err != nil || done {
			return nil, err
		}
	}
	rec, err := reg.newRecordLocked(st, sub)
	if err != nil {
		return nil, err
	}
	return [][]byte{rec.encode()}, nil
}

// targetsUnchanged reports whether the references still refer to the same active
// versions.
func (p *prepared) targetsUnchanged(st *state) bool {
	for _, t := range p.targets {
		sub, ok := st.subjects.Get(t.subject)
		if !ok {
			return false
		}
		if e, ok := sub.entry(VersionID(t.version), false); !ok || e.schema != t.schema {
			return false
		}
	}
	return true
}

// newRecordLocked chooses the id and the version, and returns the record to append.
func (reg *registration) newRecordLocked(st *state, sub *subject) (*record, error) {
	p := reg.schema
	rec := &record{
		op: opRegister, at: time.Now().UnixMilli(), subject: reg.name, version: sub.next(),
		unchecked: p.unchecked,
	}
	same := st.idsOf(p.sum)
	if st.mode == Import {
		if err := reg.chooseImportedLocked(st, sub, rec); err != nil {
			return nil, err
		}
	} else if len(same) > 0 {
		rec.id = same[0].ID
	} else {
		if st.lastID == maxID {
			return nil, reject(ErrNotPermitted, "All schema ids are in use")
		}
		rec.id = st.lastID + 1
	}
	if _, known := st.schemas.Get(rec.id); !known {
		rec.fresh, rec.algorithm, rec.typ, rec.text, rec.refs = true, canonAlgorithm, p.typ, p.text, p.refs
	}
	reg.result = Registered{ID: rec.id, Version: rec.version, New: true}
	return rec, nil
}

// chooseImportedLocked uses the id and version of the client. It returns an error if the
// id is bound to another content, or if a schema refers to the version that the
// registration would replace.
func (reg *registration) chooseImportedLocked(st *state, sub *subject, rec *record) error {
	rec.id = reg.draft.ID
	if bound, ok := st.schemas.Get(rec.id); ok && bound.sum != reg.schema.sum {
		return overwriteNotPermitted(rec.id)
	}
	if reg.draft.Version <= 0 {
		return nil
	}
	rec.version = reg.draft.Version
	if sub == nil {
		return nil
	}
	if i, taken := sub.find(rec.version); taken && sub.versions[i].schema.ID != rec.id &&
		st.referenced(reg.name, rec.version, func(usage) bool { return true }) {
		return referenceExists(reg.name, VersionID(rec.version))
	}
	return nil
}
