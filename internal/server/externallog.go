package server

import (
	"context"
	"strings"

	"freshet/internal/config"
	"freshet/internal/ensemble/natsserver"
)

// externalNATS returns the addresses and credentials of the external NATS servers.
func externalNATS(cfg *config.Config) natsserver.ExternalOptions {
	c := &cfg.NATS
	return natsserver.ExternalOptions{
		URLs: c.URLs, Credentials: c.Credentials, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		Monitoring: c.Monitoring, Replicas: len(cfg.Members.List),
	}
}

// logSynced returns a function that reports whether the external NATS servers sync every
// write, or nil if the members run the NATS servers.
func (s *server) logSynced() func() (synced, known bool, reason, message string) {
	remote, ok := s.ensemble.log.(*natsserver.Remote)
	if !ok {
		return nil
	}
	return func() (synced, known bool, reason, message string) {
		problems := remote.SyncProblems()
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

// CheckMessageLog checks the external NATS servers of a configuration without changing them. It
// returns a description, the problems that prevent their use, and warnings.
func CheckMessageLog(ctx context.Context, cfg *config.Config) (is string, wrong, unsure []string, err error) {
	remote, err := natsserver.Dial(externalNATS(cfg))
	if err != nil {
		return "", nil, nil, err
	}
	defer remote.Close()
	is, problems := remote.Inspect(ctx)
	for _, p := range problems {
		if p.Fatal {
			wrong = append(wrong, p.Message)
		} else {
			unsure = append(unsure, p.Message)
		}
	}
	return is, wrong, unsure, nil
}
