package server

import (
	"context"
	"strings"

	"freshet/internal/config"
	"freshet/internal/ensemble/natsserver"
)

// external is how NATS servers are reached that others run.
func external(cfg *config.Config) natsserver.External {
	c := &cfg.NATS
	return natsserver.External{
		URLs: c.URLs, Credentials: c.Credentials, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		Monitoring: c.Monitoring, Replicas: len(cfg.Members.List),
	}
}

// logSynced says whether a log that others run syncs every write; nil when the members
// run it themselves.
func (s *server) logSynced() func() (synced, known bool, reason, message string) {
	remote, ok := s.group.log.(*natsserver.Remote)
	if !ok {
		return nil
	}
	return func() (synced, known bool, reason, message string) {
		problems := remote.Synced()
		if len(problems) == 0 {
			return true, true, "SyncAlways", "every NATS server syncs every write"
		}
		var texts []string
		for _, p := range problems {
			if p.Reason == "SyncNotAlways" {
				known = true
			}
			texts = append(texts, p.Message)
		}
		reason = "SyncUnknown"
		if known {
			reason = "SyncNotAlways"
		}
		return false, known, reason, strings.Join(texts, "; ")
	}
}

// LookAtLog looks at the NATS servers of a configuration, and changes nothing there: what
// they are, what about them must not be, and what should not.
func LookAtLog(ctx context.Context, cfg *config.Config) (is string, wrong, unsure []string, err error) {
	remote, err := natsserver.Dial(external(cfg))
	if err != nil {
		return "", nil, nil, err
	}
	defer remote.Close()
	is, problems := remote.Look(ctx)
	for _, p := range problems {
		if p.Fatal {
			wrong = append(wrong, p.Message)
		} else {
			unsure = append(unsure, p.Message)
		}
	}
	return is, wrong, unsure, nil
}
