package natsserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/ensemble/natsserver/natsfiles"
)

// A server whose files are damaged forgets them all and rejoins under the same name with an empty
// directory. A Raft voter that forgets is dangerous: entries that it helped to commit, and votes that it
// gave, are gone. It is not dangerous while every other server has all committed entries, and that is what
// rejoin waits for (docs/adr/0047-damaged-logs.md).
//
// The steps, each durable before the next:
//
//  1. write rejoiningFile: from here on this server is one that forgets;
//  2. move the files into quarantine;
//  3. remove the floors and the manifest, which describe the old files;
//  4. wait until CheckOthers succeeds twice, settleTime apart, while this server does not run;
//  5. start with an empty directory;
//  6. when all streams and the meta layer are current, remove rejoiningFile.
//
// After a crash between any two of them the next start continues: with rejoiningFile it waits again, and it
// moves away again what does not verify.

// rejoinNote is the content of rejoiningFile, for a person who looks at it.
type rejoinNote struct {
	At      time.Time `json:"at"`
	File    string    `json:"file"`
	Problem string    `json:"problem"`
}

const (
	// settleTime is longer than a server counts as current without a message of its leader.
	settleTime     = 4 * heartbeatInterval
	othersInterval = time.Second
	othersTimeout  = 5 * time.Second
	// healthyChecks is how many successive checks must find a rejoined server current.
	healthyChecks = 3
)

// readRejoining reports whether this server is rejoining the others.
func (s *Server) readRejoining() (bool, error) {
	_, err := os.Stat(s.statePath(rejoiningFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// rejoin makes the directory empty if it is damaged, and returns when the server may start with it.
func (s *Server) rejoin(ctx context.Context, damage *natsfiles.Finding) error {
	if s.opts.CheckOthers == nil {
		if damage == nil {
			return fmt.Errorf("server in %s is rejoining and cannot check the others", s.dir)
		}
		return fmt.Errorf("%s is damaged, and the other servers cannot be checked: %w",
			s.damagedFile(damage.File), damage)
	}
	if damage != nil {
		if err := s.discard(*damage); err != nil {
			return err
		}
	} else if s.opts.Integrity.Part(part).Damaged.IsZero() {
		s.opts.Integrity.Damaged(part, s.filesPath(), errors.New("files were damaged and are not complete yet"))
	}
	s.rejoining.Store(true)
	s.healthy = 0
	if err := s.removeState(manifestFile); err != nil {
		return err
	}
	return s.awaitOthers(ctx)
}

// discard moves the files into quarantine.
func (s *Server) discard(damage natsfiles.Finding) error {
	note, err := json.Marshal(rejoinNote{At: time.Now().UTC(), File: damage.File, Problem: damage.Problem})
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(s.statePath(rejoiningFile), note); err != nil {
		return fmt.Errorf("recording that the logs are fetched again: %w", err)
	}
	if err := s.quarantine(s.filesPath(), damage); err != nil {
		return fmt.Errorf("moving the damaged logs into quarantine: %w", err)
	}
	s.floors.forget()
	return s.removeState(floorsFile, manifestFile)
}

// awaitOthers returns when all other servers are current, and have been for settleTime.
func (s *Server) awaitOthers(ctx context.Context) error {
	defer s.waiting.Store(nil)
	problem := s.opts.Integrity.Part(part)
	var since time.Time // since when the others are current
	for {
		err := s.checkOthers(ctx)
		switch {
		case err != nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= settleTime:
			s.log.Warnf("damaged logs of this member are fetched again from the other members, which are all current")
			return nil
		}
		if err == nil {
			err = errors.New("they are current and have to stay so for a moment")
		}
		why := fmt.Sprintf("its logs are damaged (%s: %s) and it fetches them again from the other members as soon as "+
			"all of them have all records: %v", problem.File, problem.Problem, err)
		s.waiting.Store(&why)
		if s.opts.ReportWaiting != nil {
			s.opts.ReportWaiting(why)
		}
		if retry.Sleep(ctx, othersInterval) != nil {
			return fmt.Errorf("%w: %s", context.Cause(ctx), why)
		}
	}
}

func (s *Server) checkOthers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, othersTimeout)
	defer cancel()
	return s.opts.CheckOthers(ctx)
}

// finishRejoining ends the rejoining of a server that has all streams again. It is called every
// watchInterval.
func (s *Server) finishRejoining() {
	if !s.rejoining.Load() {
		return
	}
	if s.checkCurrent() != nil {
		s.healthy = 0
		return
	}
	if s.healthy++; s.healthy < healthyChecks {
		return
	}
	if err := s.removeState(rejoiningFile); err != nil {
		s.log.Warnf("the end of fetching the logs again could not be recorded; retrying: %v", err)
		return
	}
	s.rejoining.Store(false)
	s.opts.Integrity.Healed(part)
	s.log.Warnf("damaged logs of this member are replaced by good copies")
}

// Current returns nil if this server has all committed entries of its streams and of the meta layer, and
// knows all servers. A server that is rejoining is not current.
func (s *Server) Current() error {
	if s.rejoining.Load() {
		return errs.New(errs.Unavailable, "it fetches its own logs again")
	}
	return s.checkCurrent()
}

func (s *Server) checkCurrent() error {
	if err := s.Health(); err != nil {
		return err
	}
	ns := s.nats.Load()
	if status := ns.Healthz(&server.HealthzOptions{}); status.StatusCode != http.StatusOK {
		return errs.Newf(errs.Unavailable, "%s", status.Error)
	}
	info, err := ns.Jsz(&server.JSzOptions{})
	if err != nil {
		return err
	}
	if all := len(s.opts.Routes) + 1; all > 1 && (info.Meta == nil || info.Meta.Size != all || info.Meta.Leader == "") {
		return errs.Newf(errs.Unavailable, "it does not know all %d servers of the replicated log", all)
	}
	return checkLeaders(ns)
}

// checkLeaders returns nil if every Raft group of a server follows a leader, or is the leader. A follower
// without a leader counts as healthy for nats-server when it has applied what it knows to be committed.
func checkLeaders(ns *server.Server) error {
	for _, account := range raftAccounts {
		status := ns.Raftz(&server.RaftzOptions{AccountFilter: account})
		if status == nil {
			return errs.New(errs.Unavailable, "its replicated log is stopping")
		}
		for _, groups := range *status {
			for name, g := range groups {
				if g.Leader == "" || g.CatchingUp {
					return errs.Newf(errs.Unavailable, "its Raft group %s has no leader or is catching up", name)
				}
			}
		}
	}
	return nil
}

// raftAccounts are the accounts of the Raft groups: "" is the system account, with the meta layer.
var raftAccounts = []string{"", server.DEFAULT_GLOBAL_ACCOUNT}
