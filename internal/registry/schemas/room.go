package schemas

import (
	"context"

	"freshet/internal/ops/quota"
)

// room is what a change has reserved of the quotas. It is given back when the
// change is applied, and so counted, or has failed.
type room struct{ subjects, bytes quota.Reservation }

func (r room) done() {
	r.subjects.Done()
	r.bytes.Done()
}

// reserve takes room for new subjects, and for bytes of new schemas.
func (r *Registry) reserve(ctx context.Context, subjects, bytes int) (room, error) {
	var taken room
	var err error
	if taken.subjects, err = r.quota.Reserve(ctx, quota.Subjects, int64(subjects)); err != nil {
		return room{}, err
	}
	if taken.bytes, err = r.quota.Reserve(ctx, quota.SchemaBytes, int64(bytes)); err != nil {
		taken.subjects.Done()
		return room{}, err
	}
	return taken, nil
}

// Used returns what counts for quotas: every subject that has a version, deleted
// or not, or a compatibility level of its own; and the bytes of distinct schemas.
func (r *Registry) Used() (subjects, bytes int64) {
	st := r.machine.View()
	return int64(st.subjects.Len()), st.bytes
}

// needs is how much a registration would add. Where the subject may be another
// by the time it is decided, it is taken for a new one.
func (reg *registration) needs(st *state) (subjects, bytes int) {
	if reg.base == nil || reg.insideLock {
		subjects = 1
	}
	if len(st.idsOf(reg.schema.sum)) == 0 || st.mode == Import {
		bytes = len(newSchema(0, reg.schema.typ, reg.schema.text, reg.schema.refs).body)
	}
	return subjects, bytes
}

// needs is how much lines would add at most.
func (in *importer) needs(lines []exportLine) (subjects, bytes int) {
	st := in.r.machine.View()
	seen := map[string]bool{}
	for i := range lines {
		line := &lines[i]
		if _, known := st.subjects.Get(line.Subject); !known && line.Subject != "" && !seen[line.Subject] {
			seen[line.Subject] = true
			subjects++
		}
		if _, known := st.schemas.Get(line.ID); !known {
			bytes += len(line.Schema)
		}
	}
	return subjects, bytes
}
