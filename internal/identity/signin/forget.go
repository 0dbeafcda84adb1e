package signin

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// Forget ends every session and grant of somebody for good, because they are gone or
// have another address. Tokens are dead when it returns; the records are removed
// soon after, and at the next start if this one ends first.
func (s *Service) Forget(uid string) {
	for _, key := range s.keysOf(uid) {
		s.end(key)
	}
	s.mu.Lock()
	s.leaving = append(s.leaving, uid)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
}

const forgetPatience = 10 * time.Second

// forgetAll removes the records of those who are to be forgotten.
func (s *Service) forgetAll(ctx context.Context) {
	s.mu.Lock()
	leaving := s.leaving
	s.leaving = nil
	s.mu.Unlock()
	for _, uid := range leaving {
		ctx, cancel := context.WithTimeout(ctx, forgetPatience)
		err := s.EndAll(ctx, uid)
		cancel()
		if err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("sessions that have ended cannot be removed from the store for now",
				slog.String("error", err.Error()))
		}
	}
}

// forgetStrangers ends what was stored of people who are not who they were when the
// service stopped.
func (s *Service) forgetStrangers() {
	s.mu.Lock()
	var subjects []Subject
	for key, h := range s.index.held.All() {
		if !strings.HasPrefix(key, people) {
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
