package server

import (
	"context"
	"fmt"
	"net/http"

	"freshet/internal/audit"
	"freshet/internal/auditapi"
	"freshet/internal/surface"
)

// openTrail opens the audit trail; it is closed late, so that it sees the end.
func (s *server) openTrail(context.Context) (err error) {
	path := s.cfg.AuditPath()
	if path == "" {
		return nil
	}
	s.trail, err = audit.Open(audit.Options{
		Path: path, MaxBytes: int64(s.cfg.Audit.MaxSize), Keep: s.cfg.Audit.Keep, Log: s.log,
	})
	if err != nil {
		return fmt.Errorf("opening the audit trail: %w", err)
	}
	s.closers = append(s.closers, s.trail.Close)
	return nil
}

// record puts something on the audit trail.
func (s *server) record(r audit.Record) {
	if s.trail != nil {
		s.trail.Record(r)
	}
}

// Record implements surface.Auditor.
func (s *server) Record(r audit.Record) { s.record(r) }

// auditTrail is the surface that the trail is read through.
func (s *server) auditTrail(options surface.Options) http.Handler {
	opts := auditapi.Options{Options: options, Audiences: s.people.audiences}
	if s.trail != nil {
		opts.Trail = s.trail
	}
	return auditapi.New(opts)
}
