package signin

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// sweeper removes records that nothing can use any more.
type sweeper struct {
	records  *indexedStore
	subjects *Subjects
}

// sweep removes expired records, and records of users that do not exist any more.
func (s *sweeper) sweep(ctx context.Context) error {
	type old struct {
		key      string
		revision int64
	}
	var over []old
	now := time.Now()
	_, err := s.records.store.List(ctx, func(key string, value []byte, revision int64) {
		if s.removable(key, value, now) {
			over = append(over, old{key, revision})
		}
	})
	if err != nil {
		return err
	}
	var problems []error
	for _, o := range over {
		if _, err := s.records.remove(ctx, o.key, o.revision); err != nil && !errors.Is(err, ErrChanged) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// removable reports whether a record can be removed: it has expired, or its user, account or
// session does not exist any more.
func (s *sweeper) removable(key string, value []byte, now time.Time) bool {
	if strings.HasPrefix(key, peoplePrefix) {
		var p person
		if json.Unmarshal(value, &p) != nil {
			return false // kept, so that an operator can inspect the damaged record
		}
		return s.isOrphan(p.Subject, p.Begun, now) || p.Password == "" && len(p.Passkeys) == 0 &&
			!now.Before(p.Invitation.Ends)
	}
	var e ends
	if json.Unmarshal(value, &e) != nil || e.Ends.IsZero() {
		return false
	}
	if !now.Before(e.Ends) {
		return true
	}
	var of struct {
		Subject Subject   `json:"subject"`
		Session string    `json:"session"`
		Begun   time.Time `json:"begun"`
	}
	if json.Unmarshal(value, &of) != nil || of.Subject == (Subject{}) {
		return false
	}
	return s.isOrphan(of.Subject, of.Begun, now) || of.Session != "" && now.Sub(of.Begun) > propagationDelay &&
		!s.sessionExists(of.Session)
}

func (s *sweeper) sessionExists(id string) bool {
	_, exists := s.records.entry(sessionsPrefix + id)
	return exists
}

// propagationDelay is longer than a change of another replica takes to reach this one.
const propagationDelay = 10 * time.Minute

// isOrphan reports whether the subject of a record does not exist any more. A recent record
// is not an orphan, because its subject may not have reached this replica yet.
func (s *sweeper) isOrphan(of Subject, begun, now time.Time) bool {
	_, alive := s.subjects.Alive(of)
	return !alive && now.Sub(begun) > propagationDelay
}
