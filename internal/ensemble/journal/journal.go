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

	"freshet/internal/base/lograte"
	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

// Message headers. The leader republishes headers only, so a member learns the positions
// of a message without its body.
const (
	firstHeader = "Freshet-First"
	lastHeader  = "Freshet-Last"
)

// maxMissingTail is how often the last message of a stream must be missing before that is a loss.
const maxMissingTail = 5

// maxIndexEntries bounds the number of messages whose sequences and positions are cached.
const maxIndexEntries = 4096

// indexEntry maps a message's sequence to the positions of its records.
type indexEntry struct{ seq, first, last uint64 }

// journal is an open stream of a journal. Type guarded replaces it when the stream has lost records.
type journal struct {
	s       *Journals
	name    string
	stream  string
	id      string // identity of the stream; "" when it is not checked
	subject string // prefix of its subjects, before .r, .s and .f
	links   *links
	accept  func(*message) // called with messages that were read or written; must return quickly
	retired chan struct{}  // closed when another stream replaces this one
	// suspicions limits searches for replicas with good records.
	suspicions *lograte.Limiter

	appending   chan struct{} // semaphore: held while publishing to the journal
	saving      chan struct{} // semaphore: held while saving a snapshot
	tailNotices *nats.Subscription

	mu    sync.Mutex
	tail  indexEntry      // last message known to be committed; protected by mu
	index []indexEntry    // cache of messages with records, by sequence; protected by mu
	snap  snapshotPointer // latest known snapshot; protected by mu
	grown chan struct{}   // closed when tail advances; protected by mu

	agreed agreement // the last one; protected by mu

	unconfirmedSince time.Time // when a no-op entry was sent that is not confirmed yet, else zero; protected by mu
}

// newJournal describes a stream of a journal. The generation is "" for the stream that was created with
// the journal, and random for a rebuilt one.
func newJournal(s *Journals, name, generation string) *journal {
	token := encodeToken(name)
	if generation != "" {
		token += "_" + generation // an encoded name contains no underscore
	}
	return &journal{
		s: s, name: name,
		stream:     s.baseStream() + "_" + token,
		subject:    journalSubjects + encodeToken(s.opts.Prefix) + "." + token,
		links:      newLinks(),
		accept:     func(*message) {},
		retired:    make(chan struct{}),
		suspicions: lograte.New(suspicionLines),
		appending:  make(chan struct{}, 1),
		saving:     make(chan struct{}, 1),
		grown:      make(chan struct{}),
	}
}

func (j *journal) recordSubject() string   { return j.subject + ".r" }
func (j *journal) snapshotSubject() string { return j.subject + ".s" }
func (j *journal) fenceSubject() string    { return j.subject + ".f" }

// create creates the stream if it is missing. A new stream gets the identity.
func (j *journal) create(ctx context.Context, id string) error {
	return j.s.ensureStream(ctx, natsjs.StreamConfig{
		Name:     j.stream,
		Subjects: []string{j.subject + ".*"},
		// The leader republishes the headers of every committed message.
		RePublish: &natsjs.RePublish{Source: ">", Destination: tailSubjects + ">", HeadersOnly: true},
		Metadata:  map[string]string{identityKey: id},
	})
}

// start subscribes to new tails and reads the tail.
func (j *journal) start(ctx context.Context) (err error) {
	if j.tailNotices, err = j.s.conn.Subscribe(tailSubjects+j.subject+".*", j.handleTailNotice); err != nil {
		return err
	}
	err = j.readEnd(ctx)
	if err != nil && !errors.As(err, new(*lossError)) {
		j.unsubscribe()
	}
	return err
}

// readEnd reads the tail and the latest snapshot.
func (j *journal) readEnd(ctx context.Context) error {
	return withRetry(ctx, func(ctx context.Context) error {
		if _, err := j.refreshTail(ctx); err != nil {
			return err
		}
		_, err := j.latestSnapshot(ctx)
		return err
	})
}

// unsubscribe ends the notices of new tails.
func (j *journal) unsubscribe() {
	if j.tailNotices != nil {
		_ = j.tailNotices.Unsubscribe() // the connection may be closed already
	}
}

// withRetry repeats calls that fail while the servers elect a leader. Each attempt gets a
// longer timeout than the one before.
func withRetry(ctx context.Context, try func(ctx context.Context) error) error {
	timeouts := retry.Backoff{Min: minTimeout, Max: maxTimeout}
	return retry.Do(ctx, retry.Backoff{Min: minBackoff, Max: maxBackoff}, func() (again bool, err error) {
		attempt, cancel := context.WithTimeout(ctx, timeouts.Next())
		defer cancel()
		err = try(attempt)
		return err != nil && !isFinal(err) && !errors.Is(err, nats.ErrConnectionClosed), err
	})
}

// handleTailNotice handles a republished message: it notes the new tail.
func (j *journal) handleTailNotice(msg *nats.Msg) {
	seq, err := sequenceHeader(msg)
	first, err1 := strconv.ParseUint(msg.Header.Get(firstHeader), 10, 64)
	last, err2 := strconv.ParseUint(msg.Header.Get(lastHeader), 10, 64)
	if errors.Join(err, err1, err2) == nil {
		j.observe(indexEntry{seq, first, last})
	}
}

// observe caches a message that is known to be committed, and advances the tail.
func (j *journal) observe(m indexEntry) {
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
	i, known := slices.BinarySearchFunc(j.index, m.seq,
		func(a indexEntry, seq uint64) int { return cmpUint(a.seq, seq) })
	if known {
		return
	}
	j.index = slices.Insert(j.index, i, m)
	if len(j.index) > maxIndexEntries {
		j.index = slices.Delete(j.index, 0, maxIndexEntries/2)
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

// knownTail returns the last message known and a channel that is closed when a later one is
// known.
func (j *journal) knownTail() (indexEntry, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tail, j.grown
}

// refreshTail reads the end of the journal from the leader and notes it. A former leader that is
// cut off may respond too, so the result can be stale.
func (j *journal) refreshTail(ctx context.Context) (*natsjs.StreamInfo, error) {
	for missing := map[uint64]int{}; ; {
		info, err := j.info(ctx)
		if err != nil {
			return nil, err
		}
		if tail, _ := j.knownTail(); info.State.LastSeq <= tail.seq {
			return info, nil
		}
		_, err = j.readMessage(ctx, info.State.LastSeq)
		if err == nil {
			return info, nil
		}
		// The message pointed to a snapshot. A later snapshot has replaced and purged it
		// since, so the stream has a later last message.
		if !errors.Is(err, errNoMessage) || retry.Sleep(ctx, minBackoff) != nil {
			return nil, err
		}
		if missing[info.State.LastSeq]++; missing[info.State.LastSeq] >= maxMissingTail {
			return nil, &lossError{fmt.Sprintf("last message %d of stream %s is missing", info.State.LastSeq, j.stream)}
		}
	}
}

// readMessage reads the message at a sequence from the leader and notes it. It returns errFenced for
// the message that ends the stream.
func (j *journal) readMessage(ctx context.Context, seq uint64) (*message, error) {
	found, err := j.get(ctx, getRequest{Seq: seq})
	if err != nil {
		return nil, err
	}
	m, err := decodeStored(found)
	if err != nil {
		return nil, lossOf(err)
	}
	if m.kind == kindFence {
		return nil, errFenced
	}
	j.observe(m.indexEntry())
	return m, nil
}

func (m *message) indexEntry() indexEntry { return indexEntry{m.seq, m.first, m.last()} }

// Last implements engine.Journal.
func (j *journal) Last(ctx context.Context) (uint64, error) {
	ctx, leave, err := j.s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	if err := j.barrier(ctx); err != nil {
		return 0, j.wrapError(ctx, "reading the end of", err)
	}
	tail, _ := j.knownTail()
	return tail.last, nil
}

// barrier returns when the known tail includes every append that any member had
// acknowledged before the call.
func (j *journal) barrier(ctx context.Context) error {
	return withRetry(ctx, func(ctx context.Context) error {
		began := time.Now()
		before, _ := j.knownTail()
		if j.s.opts.Replicas > 1 {
			if err := j.confirm(ctx); err != nil {
				return err
			}
		}
		elapsed := time.Since(began)
		info, err := j.refreshTail(ctx)
		if err != nil {
			return err
		}
		if !confirmedLeader(info, elapsed) {
			return errNoMajority
		}
		if info.State.LastSeq < before.seq {
			return &lossError{fmt.Sprintf("stream %s ends at message %d, but message %d with the record at position "+
				"%d was committed", j.stream, info.State.LastSeq, before.seq, before.last)}
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
	open := j.unconfirmedSince
	j.mu.Unlock()
	if !open.IsZero() {
		info, err := j.info(ctx)
		if err != nil {
			return err
		}
		if !confirmedLeader(info, now.Sub(open)) {
			return errNoMajority
		}
	}
	j.setUnconfirmedSince(now)
	nothing := purgeRequest{Filter: j.subject + ".nothing", Sequence: 1}
	if err := j.gone(j.s.purge(ctx, j.stream, nothing)); err != nil {
		return err
	}
	j.setUnconfirmedSince(time.Time{})
	return nil
}

func (j *journal) setUnconfirmedSince(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unconfirmedSince = at
}

// confirmedLeader reports whether the responding server was the leader at some moment within the given
// time: a majority, including the server itself, has been in contact with it as the leader
// since then. Servers that had elected another leader would not have been.
func confirmedLeader(info *natsjs.StreamInfo, since time.Duration) bool {
	if info.Cluster == nil || len(info.Cluster.Replicas) == 0 {
		return true
	}
	if info.Cluster.Leader == "" {
		return false
	}
	contacts := 1
	for _, r := range info.Cluster.Replicas {
		if r.Active > 0 && r.Active < since {
			contacts++
		}
	}
	return contacts > (len(info.Cluster.Replicas)+1)/2
}

// Wait implements engine.Journal.
func (j *journal) Wait(ctx context.Context, after uint64) error {
	for {
		tail, grown := j.knownTail()
		switch {
		case j.s.ctx.Err() != nil:
			return engine.ErrClosed
		case tail.last > after:
			return nil
		}
		select {
		case <-grown:
		case <-j.retired:
			return errRetired
		case <-ctx.Done():
			return ctx.Err()
		case <-j.s.ctx.Done():
		}
	}
}

func (j *journal) wrapError(ctx context.Context, doing string, err error) error {
	return j.s.wrapError(ctx, fmt.Sprintf("%s journal %q", doing, j.name), err)
}
