package schemas

import (
	"context"

	"freshet/internal/ops/quota"
)

// reservation is the quota that a change has reserved. It is released when the change has
// failed, or is applied and thereby counted.
type reservation struct{ subjects, bytes quota.Reservation }

func (r reservation) release() {
	r.subjects.Release()
	r.bytes.Release()
}

// reserve reserves quota for new subjects and for bytes of new schemas.
func (r *Registry) reserve(ctx context.Context, subjects, bytes int) (reservation, error) {
	var taken reservation
	var err error
	if taken.subjects, err = r.quota.Reserve(ctx, quota.Subjects, int64(subjects)); err != nil {
		return reservation{}, err
	}
	if taken.bytes, err = r.quota.Reserve(ctx, quota.SchemaBytes, int64(bytes)); err != nil {
		taken.subjects.Release()
		return reservation{}, err
	}
	return taken, nil
}

// QuotaUsage returns the usage of the quotas: the number of subjects that have a version,
// soft-deleted or not, or a compatibility level; and the bytes of distinct schemas.
func (r *Registry) QuotaUsage() (subjects, bytes int64) {
	st := r.machine.View()
	return int64(st.subjects.Len()), st.bytes
}

// needs returns how many subjects and bytes the registration adds at most. A
// registration that may be checked again in the lock counts its subject as new,
// because the subject may have been deleted by then.
func (reg *registration) needs(st *state) (subjects, bytes int) {
	if reg.base == nil || reg.checkInLock {
		subjects = 1
	}
	if len(st.idsOf(reg.schema.sum)) == 0 || st.mode == Import {
		bytes = len(newSchema(0, reg.schema.typ, reg.schema.text, reg.schema.refs).body)
	}
	return subjects, bytes
}
