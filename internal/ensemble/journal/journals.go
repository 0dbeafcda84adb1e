package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/retry"
	"freshet/internal/ensemble/integrity"
	"freshet/internal/storage/engine"
)

// Options configures the journals of one cluster.
type Options struct {
	// Prefix separates the journals of this cluster from those of others: the cluster's uid.
	Prefix string
	// Replicas is the number of servers that store each journal: 1, 3 or 5.
	Replicas int
	// Timeout bounds a call whose context has no deadline; 0 means 10 s.
	Timeout time.Duration
	// Integrity records damage of journals; nil records nothing.
	Integrity *integrity.Register
}

const (
	defaultTimeout = 10 * time.Second
	pollInterval   = 5 * time.Second // average time between two polls of the journals' tails
	maxNameBytes   = 100             // limit for the name of a journal or a cluster

	journalSubjects  = "freshet.journal."
	snapshotSubjects = "freshet.snapshot."
	tailSubjects     = "freshet.tail."
)

// Journals are the journals of one cluster.
type Journals struct {
	conn *nats.Conn
	js   natsjs.JetStream
	opts Options

	ctx    context.Context // lifetime of all calls and goroutines; Close cancels it
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	open map[string]*journal // protected by mu
}

// Open creates the cluster's snapshot stream if it is missing and starts polling. The
// caller owns the connection and must keep it open until Close returns.
func Open(ctx context.Context, conn *nats.Conn, o Options) (*Journals, error) {
	if o.Prefix == "" || len(o.Prefix) > maxNameBytes || o.Replicas < 1 {
		return nil, fmt.Errorf("%w: journals need a prefix of 1 to %d bytes and a number of replicas",
			engine.ErrInvalid, maxNameBytes)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	js, err := natsjs.New(conn)
	if err != nil {
		return nil, fmt.Errorf("opening journals: %w", err)
	}
	s := &Journals{conn: conn, js: js, opts: o, open: map[string]*journal{}}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	err = s.ensureStream(ctx, natsjs.StreamConfig{
		Name:     s.baseStream(),
		Subjects: []string{snapshotSubjects + encodeToken(o.Prefix) + ".>"},
	})
	if err != nil {
		err = s.wrapError(ctx, "opening journals", err) // before cancel, which would hide the reason
		s.cancel(engine.ErrClosed)
		return nil, err
	}
	s.wg.Go(s.poll)
	return s, nil
}

// Close cancels all calls and stops polling. The connection stays open.
func (s *Journals) Close() {
	s.cancel(engine.ErrClosed)
	s.mu.Lock()
	for _, j := range s.open {
		_ = j.tailNotices.Unsubscribe()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Journal opens the named journal and creates it if it does not exist.
func (s *Journals) Journal(ctx context.Context, name string) (engine.Journal, error) {
	if name == "" || len(name) > maxNameBytes {
		return nil, fmt.Errorf("%w: journal name must have 1 to %d bytes", engine.ErrInvalid, maxNameBytes)
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if j := s.lookup(name); j != nil {
		return j, nil
	}
	j := newJournal(s, name)
	if err := j.start(ctx); err != nil {
		return nil, s.wrapError(ctx, fmt.Sprintf("opening journal %q", name), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.open[name]; other != nil { // a concurrent call opened it first
		_ = j.tailNotices.Unsubscribe()
		return other, nil
	}
	s.open[name] = j
	return j, nil
}

func (s *Journals) lookup(name string) *journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[name]
}

// Names lists the existing journals of the cluster.
func (s *Journals) Names(ctx context.Context) ([]string, error) {
	streams, err := s.streams(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, stream := range streams {
		if name, ok := strings.CutPrefix(stream, s.baseStream()+"_"); ok {
			names = append(names, decodeToken(name))
		}
	}
	return names, nil
}

// streams lists the streams of the cluster's journals and snapshots.
func (s *Journals) streams(ctx context.Context) ([]string, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	names := s.js.StreamNames(ctx)
	var ours []string
	for name := range names.Name() {
		if name == s.baseStream() || strings.HasPrefix(name, s.baseStream()+"_") {
			ours = append(ours, name)
		}
	}
	if err := names.Err(); err != nil {
		return nil, s.wrapError(ctx, "listing journals", err)
	}
	return ours, nil
}

// Destroy permanently removes the journals and their snapshots.
func (s *Journals) Destroy(ctx context.Context) error {
	ours, err := s.streams(ctx)
	if err != nil {
		return err
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, name := range ours {
		if err := s.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, natsjs.ErrStreamNotFound) {
			return s.wrapError(ctx, "removing journals", err)
		}
	}
	return nil
}

// baseStream returns the name of the snapshot stream, which is also the prefix of the journals'
// stream names.
func (s *Journals) baseStream() string { return "J_" + encodeToken(s.opts.Prefix) }

// ensureStream creates a stream if it does not exist.
func (s *Journals) ensureStream(ctx context.Context, c natsjs.StreamConfig) error {
	c.Storage, c.Replicas, c.AllowDirect, c.Discard, c.DenyDelete = natsjs.FileStorage, s.opts.Replicas, true,
		natsjs.DiscardNew, true
	return withRetry(ctx, func(ctx context.Context) error {
		_, err := s.js.Stream(ctx, c.Name)
		if errors.Is(err, natsjs.ErrStreamNotFound) {
			_, err = s.js.CreateStream(ctx, c)
		}
		if errors.Is(err, natsjs.ErrStreamNameAlreadyInUse) {
			return nil
		}
		return err
	})
}

// poll regularly refreshes the tail of every open journal, because the republished
// messages that announce other members' writes can get lost.
func (s *Journals) poll() {
	for retry.Sleep(s.ctx, pollInterval/2+rand.N(pollInterval)) == nil {
		s.mu.Lock()
		open := make([]*journal, 0, len(s.open))
		for _, j := range s.open {
			open = append(open, j)
		}
		s.mu.Unlock()
		for _, j := range open {
			ctx, cancel := context.WithTimeout(s.ctx, minTimeout)
			_, _ = j.refreshTail(ctx) // the next poll may succeed
			cancel()
		}
	}
}

// encodeToken encodes a name for use in subjects and stream names. Different names get different
// tokens.
func encodeToken(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

// decodeToken returns the name of an encoded token.
func decodeToken(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		var c byte
		if n, err := fmt.Sscanf(text, "=%02x", &c); n == 1 && err == nil && len(text) >= 3 {
			b.WriteByte(c)
			text = text[3:]
			continue
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	return b.String()
}
