package server

import (
	"context"
	"fmt"
	"net/http"

	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/pipeline"
)

// openAudit opens the audit trail; it is closed late, so that it sees the end.
func (s *server) openAudit(context.Context) (err error) {
	path := s.cfg.AuditPath()
	if path == "" {
		return nil
	}
	s.audit, err = audit.OpenTrail(audit.Options{
		Path: path, MaxBytes: int64(s.cfg.Audit.MaxSize), Keep: s.cfg.Audit.Keep, Log: s.log, Room: s.room.has,
	})
	if err != nil {
		return fmt.Errorf("opening the audit trail: %w", err)
	}
	s.closers = append(s.closers, s.audit.Close)
	return nil
}

// Record implements pipeline.Auditor: it puts something on the audit trail, when
// there is one.
func (s *server) Record(r audit.Record) {
	if s.audit != nil {
		s.audit.Record(r)
	}
}

// auditTrail is the surface that the trail is read through.
func (s *server) auditTrail(options pipeline.Options) http.Handler {
	opts := auditapi.Options{Options: options, Audiences: s.identity.audiences}
	if s.audit != nil {
		opts.Trail = s.audit
	}
	return auditapi.New(opts)
}
