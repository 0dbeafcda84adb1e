package server

import (
	"context"
	"fmt"
	"net/http"

	"freshet/internal/ops/audit"
	"freshet/internal/surfaces/auditapi"
	"freshet/internal/surfaces/pipeline"
)

// openAudit opens the audit log. It is an early phase, so that the log is closed late and
// contains the last records.
func (s *server) openAudit(context.Context) (err error) {
	path := s.cfg.AuditPath()
	if path == "" {
		return nil
	}
	s.audit, err = audit.OpenTrail(audit.Options{
		Path: path, MaxBytes: int64(s.cfg.Audit.MaxSize), MaxRotated: s.cfg.Audit.Keep, Log: s.log,
		HasSpace: s.reserve.HasSpace,
	})
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	s.closers = append(s.closers, s.audit.Close)
	return nil
}

// Record implements pipeline.Auditor: it writes a record to the audit log, unless the log is
// off.
func (s *server) Record(r audit.Record) {
	if s.audit != nil {
		s.audit.Record(r)
	}
}

// auditTrail returns the surface for reading the audit log.
func (s *server) auditTrail(options pipeline.Options) http.Handler {
	opts := auditapi.Options{Options: options, Audiences: s.identity.audiences}
	if s.audit != nil {
		opts.Trail = s.audit
	}
	return auditapi.New(opts)
}
