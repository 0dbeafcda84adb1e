package schemas

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"freshet/internal/base/errs"
	"freshet/internal/base/workpool"
)

// Verdict is the outcome of a compatibility check.
type Verdict struct {
	Compatible bool
	Messages   []string // the reasons, in the format of Confluent Schema Registry
}

var (
	errTooDeep = errs.Newf(errs.Invalid, "references are nested more than %d deep", maxReferenceDepth)
	errTooMany = errs.Newf(errs.Invalid, "references include more than %d schemas or %d bytes in total",
		maxDependencies, maxClosureBytes)
)

// maxQuotedSchema is the number of bytes of the old schema that a message quotes.
const maxQuotedSchema = 10 * 1024

// CheckVersion reports whether a draft is compatible with one version of a
// subject, in the direction of the subject's level. Every draft is compatible
// with the latest version of an unknown subject.
func (r *Registry) CheckVersion(ctx context.Context, subject string, v VersionID, d *Draft) (Verdict, error) {
	if err := CheckSubject(subject); err != nil {
		return Verdict{}, err
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return Verdict{}, err
	}
	var against []versionEntry
	sub, found := st.visible(subject, false)
	if found {
		if e, ok := sub.entry(v, false); ok {
			against = []versionEntry{e}
		}
	}
	if len(against) == 0 && v != Latest {
		return Verdict{}, versionNotFound(v)
	}
	return r.verdict(r.newJob(ctx), st, subject, against, d)
}

// CheckSubjectVersions reports whether a draft is compatible with the versions
// against which the subject's level requires a check.
func (r *Registry) CheckSubjectVersions(ctx context.Context, subject string, d *Draft) (Verdict, error) {
	if err := CheckSubject(subject); err != nil {
		return Verdict{}, err
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return Verdict{}, err
	}
	sub, _ := st.visible(subject, false)
	return r.verdict(r.newJob(ctx), st, subject, versionsToCheck(sub, st.level(subject)), d)
}

func (r *Registry) verdict(w *job, st *state, subject string, against []versionEntry, d *Draft) (Verdict, error) {
	// Quirk: normalize is accepted and has no effect here.
	draft := *d
	draft.Normalize = false
	p, err := r.prepare(w, st, subject, &draft, prepareOptions{})
	if err != nil {
		return Verdict{}, err
	}
	messages, err := r.check(w, st, subject, st.level(subject), p, against)
	if err != nil {
		return Verdict{}, err
	}
	return Verdict{Compatible: len(messages) == 0, Messages: messages}, nil
}

// versionsToCheck returns the versions against which a level requires a check of a new
// schema, newest first.
func versionsToCheck(sub *subject, level Level) []versionEntry {
	if sub == nil {
		return nil
	}
	var entries []versionEntry
	for _, e := range slices.Backward(sub.versions) {
		if e.deleted {
			continue
		}
		entries = append(entries, e)
		if !level.Transitive() {
			break
		}
	}
	return entries
}

// check compares a draft with versions, newest first. It returns the problems
// with the first version that is incompatible.
func (r *Registry) check(w *job, st *state, subject string, level Level, p *prepared,
	against []versionEntry,
) ([]string, error) {
	if len(against) > 0 && against[0].schema.Type != p.typ {
		// Quirk: the type of a subject cannot change, not even with the level NONE.
		return explain([]string{differentType}, against[0], level), nil
	}
	if level == None || len(against) == 0 {
		return nil, nil
	}
	for _, e := range against {
		messages, err := r.checkOne(w, st, level, p, e.schema)
		switch {
		case errors.Is(err, workpool.ErrTooCostly):
			return nil, invalidSchema(subject, &Draft{Type: p.typ, Text: p.text, References: p.refs},
				"checking against version %d: %s", e.number, err.Error())
		case err != nil:
			return nil, err
		}
		if len(messages) == 0 {
			continue
		}
		return explain(messages, e, level), nil
	}
	return nil, nil
}

// explain appends to the problems the version that has them, and the level.
func explain(messages []string, e versionEntry, level Level) []string {
	return append(messages,
		fmt.Sprintf("{oldSchemaVersion: %d}", e.number),
		fmt.Sprintf("{oldSchema: '%s'}", clip(e.schema.Text(), maxQuotedSchema)),
		fmt.Sprintf("{validateFields: 'false', compatibility: '%s'}", level))
}

const differentType = "Incompatible because of different schema type"

func (r *Registry) checkOne(w *job, st *state, level Level, p *prepared, old *Schema) ([]string, error) {
	switch {
	case level == AlwaysIncompatible:
		return []string{"{errorType:'ALWAYS_INCOMPATIBLE', description:'The compatibility level of the subject " +
			"allows no further version'}"}, nil
	case old.Type != p.typ:
		return []string{differentType}, nil
	case old.sum == p.sum:
		return nil, nil
	}
	before, err := r.stored(w, st, old)
	if err != nil {
		return nil, asInvalidSchema(err)
	}
	var messages []string
	err = w.do(len(p.text)+len(old.body), func() (err error) {
		messages, err = problems(level, before, p.parsed, w.Spend)
		return err
	})
	if err != nil {
		return nil, asInvalidSchema(err)
	}
	return messages, nil
}

// problems returns why the schema next cannot follow the schema before, in the
// directions that the level requires.
func problems(level Level, before, next parsedSchema, spend spendFunc) (messages []string, err error) {
	if level.forward() {
		if messages, err = next.problems(before, oldReadsNew, spend); err != nil {
			return nil, err
		}
	}
	if level.backward() {
		more, err := before.problems(next, newReadsOld, spend)
		if err != nil {
			return nil, err
		}
		messages = append(messages, more...)
	}
	return messages, nil
}

// asInvalidSchema converts an error that a schema caused into ErrInvalidSchema, and
// returns other errors unchanged.
func asInvalidSchema(err error) error {
	if errs.KindOf(err) != errs.Invalid || isTransient(err) || errors.Is(err, workpool.ErrTooCostly) {
		return err
	}
	return reject(ErrInvalidSchema, "Invalid schema, details: %s", err.Error())
}
