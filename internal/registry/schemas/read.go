package schemas

import (
	"context"
	"slices"
)

// Visibility determines which versions or subjects a list contains.
type Visibility uint8

// The visibilities. A subject is soft-deleted when all its versions are.
const (
	Active      Visibility = iota
	WithDeleted            // active and soft-deleted
	OnlyDeleted            // soft-deleted
)

func (v Visibility) shows(deleted bool) bool {
	switch v {
	case WithDeleted:
		return true
	case OnlyDeleted:
		return deleted
	default:
		return !deleted
	}
}

// SchemaByID returns a schema by id, also when all its versions are
// soft-deleted: messages that were written with it must stay readable.
func (r *Registry) SchemaByID(ctx context.Context, id int32) (*Schema, error) {
	// A hit needs no barrier, because the content of an id does not change. A
	// schema that another replica has permanently deleted may still be returned
	// until this replica has applied the deletion (docs/spec/registry.md#reads).
	if s, ok := r.machine.View().schemas.Get(id); ok {
		return s, nil
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	if s, ok := st.schemas.Get(id); ok {
		return s, nil
	}
	return nil, schemaIDNotFound(id)
}

// Usage is a version of a subject that has a schema.
type Usage struct {
	Subject string
	Version int32
	Deleted bool
}

// Usages returns the versions that have an id, sorted by subject and version.
func (r *Registry) Usages(ctx context.Context, id int32, deleted bool) ([]Usage, error) {
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := st.schemas.Get(id); !ok {
		return nil, schemaNotFound()
	}
	usages := []Usage{}
	st.hasUsage(id, func(u usage) bool {
		if deleted || !u.deleted {
			usages = append(usages, Usage{Subject: u.subject, Version: u.version, Deleted: u.deleted})
		}
		return false
	})
	return usages, nil
}

// VisitSubjectsOf calls visit with each subject that has an active or soft-deleted version
// with this id, until visit returns false. It reads the state of this replica
// without a barrier.
func (r *Registry) VisitSubjectsOf(id int32, visit func(subject string) bool) {
	last := ""
	r.machine.View().hasUsage(id, func(u usage) bool {
		if u.subject == last {
			return false
		}
		last = u.subject
		return !visit(u.subject)
	})
}

// Subjects calls visit with every subject of a list, in ascending order, until
// visit returns false.
func (r *Registry) Subjects(ctx context.Context, which Visibility, visit func(subject string) bool) error {
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return err
	}
	st.subjects.Scan(func(name string, sub *subject) bool {
		if len(sub.versions) == 0 || !which.shows(sub.active == 0) {
			return true
		}
		return visit(name)
	})
	return nil
}

// Versions returns the version numbers of a subject in ascending order.
func (r *Registry) Versions(ctx context.Context, name string, which Visibility) ([]int32, error) {
	if err := CheckSubject(name); err != nil {
		return nil, err
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	sub, ok := st.visible(name, true)
	if !ok {
		return nil, subjectNotFound(name)
	}
	numbers := make([]int32, 0, len(sub.versions))
	for _, e := range sub.versions {
		if which.shows(e.deleted) {
			numbers = append(numbers, e.number)
		}
	}
	if len(numbers) == 0 {
		return nil, subjectNotFound(name)
	}
	return numbers, nil
}

// Version returns one version of a subject.
func (r *Registry) Version(ctx context.Context, name string, v VersionID, deleted bool) (Version, error) {
	if err := CheckSubject(name); err != nil {
		return Version{}, err
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return Version{}, err
	}
	return st.version(name, v, deleted)
}

// ReferencedBy returns the ids of the schemas that refer to a version, in
// ascending order: those that have an active version, and, if deleted is set,
// also those that have only soft-deleted versions.
func (r *Registry) ReferencedBy(ctx context.Context, name string, v VersionID, deleted bool) ([]int32, error) {
	if err := CheckSubject(name); err != nil {
		return nil, err
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	target, err := st.version(name, v, true) // a soft-deleted version can have referrers, too
	if err != nil {
		return nil, err
	}
	ids := []int32{}
	st.visitReferrers(name, target.Version, func(id int32) bool {
		if st.hasUsage(id, func(u usage) bool { return deleted || !u.deleted }) {
			ids = append(ids, id)
		}
		return true
	})
	return slices.Clip(ids), nil
}

// Level returns the compatibility level of a subject, or the default. The subject
// need not exist.
func (r *Registry) Level(ctx context.Context, name string) (Level, error) {
	if err := CheckSubject(name); err != nil {
		return 0, err
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return 0, err
	}
	return st.level(name), nil
}

// Mode returns the mode of the registry.
func (r *Registry) Mode(ctx context.Context) (Mode, error) {
	if r.fixedMode {
		return ReadWrite, nil
	}
	st, err := r.machine.Fresh(ctx)
	if err != nil {
		return 0, err
	}
	return st.mode, nil
}
