package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/lograte"
	"freshet/internal/ensemble/replicas"
)

// A record that does not verify, or is missing between others, is never passed on. It does not mean that the
// journal is lost: usually the file of one replica is damaged. So the record is read at the other replicas
// (package replicas), and the servers that do not have it verify and replace their files. The journal is lost
// when a majority of the replicas has no good record.

// suspicionLines limits log lines and checks of replicas to one a minute for each server.
var suspicionLines = lograte.Policy{Interval: time.Minute, Forget: time.Minute}

// agreedFor is how long a majority without a good record is not read again, because a search moves the leader
// of the stream.
const agreedFor = time.Minute

// agreement is a majority that has no good record.
type agreement struct {
	position uint64
	until    time.Time
}

// isAgreed reports whether a majority had no good record at a position a short time ago.
func (j *journal) isAgreed(position uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.agreed.position == position && time.Now().Before(j.agreed.until)
}

func (j *journal) agree(position uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.agreed = agreement{position, time.Now().Add(agreedFor)}
}

// leaderReader returns a function that reads the message with the record after last from the leader. It
// stores the message in found if it verifies.
func (j *journal) leaderReader(last uint64, found *[]*message) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		seq, err := j.sequenceOf(ctx, last+1)
		var one storedMessage
		if err == nil {
			one, err = j.get(ctx, getRequest{Seq: seq, NextFor: j.recordSubject()})
		}
		if err == nil {
			*found, err = j.verifyBatch(last, []storedMessage{one})
		}
		var loss *lossError
		if errors.Is(err, errNoMessage) || errors.As(err, &loss) && loss != errFenced {
			return false, nil
		}
		return err == nil && len(*found) > 0, err
	}
}

// fetchElsewhere reads the message with the record after last from a replica that has it, when the leader has
// not. It returns the loss if a majority has not.
func (j *journal) fetchElsewhere(ctx context.Context, last uint64, loss *lossError) ([]*message, error) {
	if j.isAgreed(last + 1) {
		return nil, loss
	}
	var found []*message
	bad, err := replicas.Search(ctx, j.s.js, j.stream, j.leaderReader(last, &found))
	switch {
	case err == nil:
		j.suspect(bad, last+1)
		return found, nil
	case errors.Is(err, replicas.ErrAgreed):
		j.agree(last + 1)
		return nil, loss
	case errors.As(err, new(*lossError)), errors.Is(err, natsjs.ErrStreamNotFound):
		return nil, loss
	}
	return nil, fmt.Errorf("%s, and not all replicas could be read: %w", loss.what, err)
}

// checkNearest checks the replica of this member's own server, which usually serves its reads, when it has
// other records than the leader. The leader has returned the message with the record after last.
func (j *journal) checkNearest(last uint64, leaders *message) {
	if ok, _ := j.suspicions.Allow("check"); !ok || j.s.opts.Suspect == nil {
		return
	}
	server := j.s.opts.Member
	j.s.start(func() {
		var found []*message
		read := j.leaderReader(last, &found)
		same := func(ctx context.Context) (bool, error) {
			good, err := read(ctx)
			return good && bytes.Equal(found[0].body, leaders.body), err
		}
		if good, err := replicas.Check(j.s.ctx, j.s.js, j.stream, server, same); err == nil && !good &&
			last >= j.compactedPosition() {
			j.suspect([]string{server}, last+1)
		}
	})
}

// suspect reports servers whose replicas lack a record that another one has.
func (j *journal) suspect(servers []string, position uint64) {
	for _, server := range servers {
		if ok, _ := j.suspicions.Allow("suspect " + server); ok {
			j.s.log.Warn("replica of a journal has a record that does not verify, or lacks it; another replica has "+
				"it, and the server of the bad one verifies its files",
				slog.String("journal", j.s.opts.Prefix+"/"+j.name),
				slog.String("server", server), slog.Uint64("position", position))
		}
		if j.s.opts.Suspect != nil {
			j.s.opts.Suspect(server, fmt.Sprintf("record %d of stream %s does not verify or is missing, and another "+
				"replica has it", position, j.stream))
		}
	}
}
