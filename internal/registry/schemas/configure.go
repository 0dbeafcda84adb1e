package schemas

import (
	"context"
	"time"
)

// SetLevel sets the compatibility level of a subject. The subject need not exist.
func (r *Registry) SetLevel(ctx context.Context, name string, level Level) error {
	if err := CheckSubject(name); err != nil {
		return err
	}
	subjects := 0
	if _, known := r.machine.View().subjects.Get(name); !known {
		subjects = 1
	}
	taken, err := r.reserve(ctx, subjects, 0)
	if err != nil {
		return err
	}
	defer taken.release()
	_, err = r.machine.Update(context.WithoutCancel(ctx), func(st *state) ([][]byte, error) {
		if st.mode.readOnly() {
			return nil, readOnly(name)
		}
		if sub, ok := st.subjects.Get(name); ok && sub.level == level {
			return nil, nil
		}
		rec := &record{op: opSetLevel, at: time.Now().UnixMilli(), subject: name, level: level}
		return [][]byte{rec.encode()}, nil
	})
	return err
}

// SetMode sets the mode of the registry. Without force, IMPORT requires a
// registry without active subjects, and permanently deletes soft-deleted
// versions, so that an import can use their ids and version numbers.
func (r *Registry) SetMode(ctx context.Context, mode Mode, force bool) error {
	if r.fixedMode {
		return reject(ErrNotPermitted, "Mode changes are not allowed")
	}
	_, err := r.machine.Update(ctx, func(st *state) ([][]byte, error) {
		if st.mode == mode {
			return nil, nil
		}
		rec := &record{op: opSetMode, at: time.Now().UnixMilli(), mode: mode}
		if mode == Import && !force {
			if st.counts.Subjects > 0 {
				return nil, reject(ErrNotPermitted, "Cannot import since found existing subjects")
			}
			rec.purge = st.counts.DeletedSubjects > 0
		}
		return [][]byte{rec.encode()}, nil
	})
	return err
}
