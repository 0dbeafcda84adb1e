package schemas

import (
	"context"
	"slices"
	"time"
)

// DeleteVersion deletes one version, softly or permanently, and returns its
// number.
func (r *Registry) DeleteVersion(ctx context.Context, name string, v VersionID, permanent bool) (int32, error) {
	if err := CheckSubject(name); err != nil {
		return 0, err
	}
	var deleted int32
	_, err := r.machine.UpdateWhenDiskFull(ctx, func(st *state) ([][]byte, error) {
		target, err := st.version(name, v, true)
		if err != nil {
			return nil, err
		}
		number := VersionID(target.Version)
		if target.Deleted && !permanent {
			return nil, versionSoftDeleted(name, number)
		}
		if st.mode.readOnly() {
			return nil, readOnly(name)
		}
		if st.referenced(name, target.Version, func(u usage) bool { return permanent || !u.deleted }) {
			return nil, referenceExists(name, number)
		}
		if permanent && !target.Deleted {
			return nil, versionNotSoftDeleted(name, number)
		}
		deleted = target.Version
		return deletion(name, []int32{target.Version}, permanent), nil
	})
	return deleted, err
}

// DeleteSubject deletes all versions of a subject, softly or permanently, and
// returns their numbers in ascending order.
func (r *Registry) DeleteSubject(ctx context.Context, name string, permanent bool) ([]int32, error) {
	if err := CheckSubject(name); err != nil {
		return nil, err
	}
	var deleted []int32
	_, err := r.machine.UpdateWhenDiskFull(ctx, func(st *state) ([][]byte, error) {
		sub, ok := st.visible(name, true)
		if !ok {
			return nil, subjectNotFound(name)
		}
		if sub.active == 0 && !permanent {
			return nil, subjectSoftDeleted(name)
		}
		if st.mode.readOnly() {
			return nil, readOnly(name)
		}
		deleted = deleted[:0]
		for _, e := range sub.versions {
			if e.deleted && !permanent {
				continue
			}
			deleted = append(deleted, e.number)
			// References within the subject are deleted with it.
			if st.referenced(name, e.number,
				func(u usage) bool { return u.subject != name && (permanent || !u.deleted) }) {
				return nil, referenceExists(name, VersionID(e.number))
			}
		}
		if permanent && sub.active > 0 {
			return nil, subjectNotSoftDeleted(name)
		}
		return deletion(name, slices.Clone(deleted), permanent), nil
	})
	if err != nil {
		return nil, err
	}
	return deleted, nil
}

func deletion(name string, versions []int32, permanent bool) [][]byte {
	rec := &record{op: opSoftDelete, at: time.Now().UnixMilli(), subject: name, versions: versions}
	if permanent {
		rec.op = opHardDelete
	}
	return [][]byte{rec.encode()}
}
