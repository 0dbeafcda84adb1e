package server

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"freshet/internal/config"
)

// reopenTimeout is the timeout for reopening the audit log.
const reopenTimeout = 5 * time.Second

// reload reopens files and applies the settings that can change at run time. It logs what
// fails and continues with the old files and settings.
func (s *server) reload(ctx context.Context, read func() (*config.Config, error)) {
	ctx, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	failed := func(what string, err error) {
		s.log.Error("SIGHUP: "+what+" failed; the old one stays in use", slog.Any("error", err))
	}
	if err := s.logger.Reopen(); err != nil {
		failed("reopening the log", err)
	}
	if s.audit != nil {
		if err := s.audit.Reopen(ctx); err != nil {
			failed("reopening the audit log", err)
		}
	}
	if s.ports.certs == nil {
		// the server's own certificate authority has no files to reload
	} else if err := s.ports.certs.Load(); err != nil {
		failed("loading the HTTPS certificate", err)
	}
	next, err := read()
	if err != nil {
		failed("reading the configuration", err)
		return
	}
	now, changed, restart := s.settings.Load().Reload(next)
	if err := s.logger.SetLevel(now.Log.Level); err != nil {
		failed("setting the log level", err)
	}
	s.access.Configure(accessMode(now), now.Log.AccessRate)
	s.settings.Store(now)
	if defaults, own, err := quotasOf(now); err != nil {
		failed("setting the quotas", err)
	} else {
		s.quotas.Change(defaults, own)
	}
	s.log.Info("SIGHUP: log, audit log, certificate and configuration are reloaded",
		slog.String("changed", strings.Join(changed, ", ")))
	if len(restart) > 0 {
		s.log.Warn("SIGHUP: some changed settings need a restart; their old values stay in use",
			slog.String("settings", strings.Join(restart, ", ")))
	}
}
