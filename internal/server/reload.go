package server

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/config"
)

// reopenTimeout bounds how long the audit trail may take to change files.
const reopenTimeout = 5 * time.Second

// reload opens files again and takes up what may change at run time. What cannot
// be used is told, and the old goes on.
func (s *server) reload(ctx context.Context, read func() (*config.Config, error)) {
	ctx, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	failed := func(what string, err error) {
		s.log.Error("SIGHUP: "+what+" failed; the old one stays in use", slog.String("error", err.Error()))
	}
	if err := s.logger.Reopen(); err != nil {
		failed("opening the log again", err)
	}
	if s.audit != nil {
		if err := s.audit.Reopen(ctx); err != nil {
			failed("opening the audit trail again", err)
		}
	}
	if s.certs == nil {
		// the server's own authority needs no reload
	} else if err := s.certs.load(); err != nil {
		failed("loading the HTTPS certificate", err)
	}
	next, err := read()
	if err != nil {
		failed("reading the configuration", err)
		return
	}
	now, changed, restart := s.settings().Reload(next)
	if err := s.logger.SetLevel(now.Log.Level); err != nil {
		failed("setting the log level", err)
	}
	s.access.Configure(accessMode(now), now.Log.AccessRate)
	s.current.Store(now)
	if defaults, own, err := quotasOf(now); err != nil {
		failed("setting the quotas", err)
	} else {
		s.quotas.Change(defaults, own)
	}
	s.log.Info("SIGHUP: log, audit trail, certificate and configuration are up to date",
		slog.String("changed", strings.Join(changed, ", ")))
	if len(restart) > 0 {
		s.log.Warn("SIGHUP: settings have changed that need a restart; they are as before",
			slog.String("settings", strings.Join(restart, ", ")))
	}
}

// accessMode says which requests the log shows.
func accessMode(cfg *config.Config) web.AccessMode {
	switch cfg.Log.Access {
	case config.AccessErrors:
		return web.AccessErrors
	case config.AccessOff:
		return web.AccessOff
	}
	return web.AccessAll
}
