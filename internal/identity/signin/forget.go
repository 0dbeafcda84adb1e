package signin

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// Forget ends every session and grant of a user that was deleted or has another address.
// The tokens do not work any more when it returns. Run removes the records soon after; if
// the process ends first, Load does so at the next start.
func (s *Service) Forget(uid string) {
	for _, key := range s.keysOf(uid) {
		s.endTokens(key)
	}
	s.mu.Lock()
	s.leaving = append(s.leaving, uid)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // Run is already notified
	}
}

// forgetTimeout is the timeout for removing the records of one user.
const forgetTimeout = 10 * time.Second

// removeForgotten removes the records of the users for which Forget was called.
func (s *Service) removeForgotten(ctx context.Context) {
	s.mu.Lock()
	leaving := s.leaving
	s.leaving = nil
	s.mu.Unlock()
	for _, uid := range leaving {
		ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
		err := s.EndAll(ctx, uid)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("ended sessions cannot be removed from the store; the next sweep retries",
				slog.Any("error", err))
		}
	}
}

// forgetChangedUsers ends the stored sessions and grants of users that were deleted or changed
// while the service was not running.
func (s *Service) forgetChangedUsers() {
	s.mu.Lock()
	var subjects []Subject
	for key, h := range s.index.entries.All() {
		if !strings.HasPrefix(key, peoplePrefix) {
			subjects = append(subjects, h.subject)
		}
	}
	s.mu.Unlock()
	for _, of := range subjects {
		if _, alive := s.Alive(of); !alive {
			s.Forget(of.UID)
		}
	}
}
