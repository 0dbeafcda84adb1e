package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"freshet/internal/storage/engine"
)

// Message headers. The leader republishes headers only, so a member learns the positions
// of a message without its body.
const (
	firstHeader = "Freshet-First"
	lastHeader  = "Freshet-Last"
)

// maxMarks bounds the number of messages whose sequences and positions are cached.
const maxMarks = 4096

// mark maps a message's sequence to the positions of its records.
type mark struct{ seq, first, last uint64 }

// journal is one open journal.
type journal struct {
	s       *Journals
	name    string
	stream  string
	subject string // prefix of its subjects, before .r and .s

	appending chan struct{} // semaphore: held while publishing to the journal
	saving    chan struct{} // semaphore: held while saving a snapshot
	hints     *nats.Subscription

	mu    sync.Mutex
	tail  mark          // last message known to be committed; protected by mu
	marks []mark        // cache of messages with records, by sequence; protected by mu
	snap  pointer       // latest known snapshot; protected by mu
	grown chan struct{} // closed when tail advances; protected by mu

	unconfirmed time.Time // when a no-op entry was sent that is not confirmed yet, else zero; protected by mu
}

var _ engine.Journal = (*journal)(nil)

func newJournal(s *Journals, name string) *journal {
	return &journal{
		s: s, name: name,
		stream:    s.bucket() + "_" + token(name),
		subject:   journalSubjects + token(s.opts.Prefix) + "." + token(name),
		appending: make(chan struct{}, 1),
		saving:    make(chan struct{}, 1),
		grown:     make(chan struct{}),
	}
}

func (j *journal) recordSubject() string   { return j.subject + ".r" }
func (j *journal) snapshotSubject() string { return j.subject + ".s" }

// start creates the stream if it is missing, subscribes to new tails and reads the tail.
func (j *journal) start(ctx context.Context) error {
	err := j.s.ensure(ctx, natsjs.StreamConfig{
		Name:     j.stream,
		Subjects: []string{j.subject + ".*"},
		// The leader republishes the headers of every committed message.
		RePublish: &natsjs.RePublish{Source: ">", Destination: tailSubjects + ">", HeadersOnly: true},
	})
	if err != nil {
		return err
	}
	if j.hints, err = j.s.conn.Subscribe(tailSubjects+j.subject+".*", j.hint); err != nil {
		return err
	}
	err = retry(ctx, func(ctx context.Context) error {
		if _, err := j.look(ctx); err != nil {
			return err
		}
		_, err := j.latest(ctx)
		return err
	})
	if err != nil {
		_ = j.hints.Unsubscribe()
	}
	return err
}

// retry repeats calls that fail while the servers elect a leader. Each attempt gets a
// longer timeout than the one before.
func retry(ctx context.Context, try func(ctx context.Context) error) error {
	wait, answer := minBackoff, minAnswer
	for {
		attempt, cancel := context.WithTimeout(ctx, answer)
		err := try(attempt)
		cancel()
		if err == nil || final(err) || errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		if !pause(ctx, wait) {
			return err
		}
		wait, answer = min(2*wait, maxBackoff), min(2*answer, maxAnswer)
	}
}

// hint handles a republished message: it notes the new tail.
func (j *journal) hint(msg *nats.Msg) {
	seq, err := sequence(msg)
	first, err1 := strconv.ParseUint(msg.Header.Get(firstHeader), 10, 64)
	last, err2 := strconv.ParseUint(msg.Header.Get(lastHeader), 10, 64)
	if errors.Join(err, err1, err2) == nil {
		j.note(mark{seq, first, last})
	}
}

// note caches a message that is known to be committed, and advances the tail.
func (j *journal) note(m mark) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m.seq > j.tail.seq {
		j.tail = m
		close(j.grown)
		j.grown = make(chan struct{})
	}
	if m.first > m.last { // a snapshot message has no records
		return
	}
	i, known := slices.BinarySearchFunc(j.marks, m.seq, func(a mark, seq uint64) int { return cmpUint(a.seq, seq) })
	if known {
		return
	}
	j.marks = slices.Insert(j.marks, i, m)
	if len(j.marks) > maxMarks {
		j.marks = slices.Delete(j.marks, 0, maxMarks/2)
	}
}

func cmpUint(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// end returns the last message known and a channel that is closed when a later one is
// known.
func (j *journal) end() (mark, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tail, j.grown
}

// look reads the end of the journal from the leader and notes it. A former leader that is
// cut off may respond too, so the result can be stale.
func (j *journal) look(ctx context.Context) (*natsjs.StreamInfo, error) {
	for {
		info, err := j.s.info(ctx, j.stream, "")
		if err != nil {
			return nil, err
		}
		if tail, _ := j.end(); info.State.LastSeq <= tail.seq {
			return info, nil
		}
		_, err = j.read(ctx, info.State.LastSeq)
		if err == nil {
			return info, nil
		}
		// The message pointed to a snapshot. A later snapshot has replaced and purged it
		// since, so the stream has a later last message.
		if !errors.Is(err, errNoMessage) || !pause(ctx, minBackoff) {
			return nil, err
		}
	}
}

// read reads the message at a sequence from the leader and notes it.
func (j *journal) read(ctx context.Context, seq uint64) (*message, error) {
	found, err := j.s.get(ctx, j.stream, getRequest{Seq: seq})
	if err != nil {
		return nil, err
	}
	m, err := decode(found.seq, found.data)
	if err != nil {
		return nil, err
	}
	j.note(m.mark())
	return m, nil
}

func (m *message) mark() mark { return mark{m.seq, m.first, m.last()} }

// Last implements engine.Journal.
func (j *journal) Last(ctx context.Context) (uint64, error) {
	ctx, leave, err := j.s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	if err := j.barrier(ctx); err != nil {
		return 0, j.failed(ctx, "reading the end of", err)
	}
	tail, _ := j.end()
	return tail.last, nil
}

// barrier returns when the known tail includes every append that any member had
// acknowledged before the call.
func (j *journal) barrier(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		began := time.Now()
		if j.s.opts.Replicas > 1 {
			if err := j.confirm(ctx); err != nil {
				return err
			}
		}
		asked := time.Since(began)
		info, err := j.look(ctx)
		if err != nil {
			return err
		}
		if !led(info, asked) {
			return errNoMajority
		}
		return nil
	})
}

// errNoMajority is returned when the response may come from a former leader.
var errNoMajority = errors.New("stream leader has had no contact with a majority since the call began")

// confirm makes the leader commit an entry without effect.
//
// A leader that is cut off accepts the entry and cannot commit it. Each entry that it has
// accepted delays it by seconds from following the next leader. So confirm sends no second
// entry until the leader has been in contact with a majority after the first one.
func (j *journal) confirm(ctx context.Context) error {
	now := time.Now()
	j.mu.Lock()
	open := j.unconfirmed
	j.mu.Unlock()
	if !open.IsZero() {
		info, err := j.s.info(ctx, j.stream, "")
		if err != nil {
			return err
		}
		if !led(info, now.Sub(open)) {
			return errNoMajority
		}
	}
	j.setUnconfirmed(now)
	nothing := purgeRequest{Filter: j.subject + ".nothing", Sequence: 1}
	if err := j.s.purge(ctx, j.stream, nothing); err != nil {
		return err
	}
	j.setUnconfirmed(time.Time{})
	return nil
}

func (j *journal) setUnconfirmed(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unconfirmed = at
}

// led reports whether the responding server was the leader at some moment within the given
// time: a majority, including the server itself, has been in contact with it as the leader
// since then. Servers that had elected another leader would not have been.
func led(info *natsjs.StreamInfo, since time.Duration) bool {
	if info.Cluster == nil || len(info.Cluster.Replicas) == 0 {
		return true
	}
	if info.Cluster.Leader == "" {
		return false
	}
	heard := 1
	for _, r := range info.Cluster.Replicas {
		if r.Active > 0 && r.Active < since {
			heard++
		}
	}
	return heard > (len(info.Cluster.Replicas)+1)/2
}

// Wait implements engine.Journal.
func (j *journal) Wait(ctx context.Context, after uint64) error {
	for {
		tail, grown := j.end()
		switch {
		case j.s.ctx.Err() != nil:
			return engine.ErrClosed
		case tail.last > after:
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		case <-j.s.ctx.Done():
		}
	}
}

func (j *journal) failed(ctx context.Context, doing string, err error) error {
	return j.s.failed(ctx, fmt.Sprintf("%s journal %q", doing, j.name), err)
}
