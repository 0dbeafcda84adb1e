package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

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
	Logger    *slog.Logger // nil logs nothing

	// Suspect is called with a server whose replica of a journal has a record that does not verify, or lacks
	// one, while another replica has it. It must return quickly. nil suspects no server. The server of this
	// member has the name Member.
	Suspect func(server, reason string)

	// Etcd makes this member keep a copy of each journal that it opens, and rebuild a journal whose
	// stream has lost records from the members' copies. When it is nil, the fields below are not used.
	Etcd *clientv3.Client
	// Keys is the prefix of the cluster's keys in etcd, such as /freshet/shards/<uid>/journal.
	Keys string
	// Dir is the directory of the cluster's copies.
	Dir string
	// Member is this member, All are all members.
	Member string
	All    []string
	// Peers has the connections to the other members, which serve Handler.
	Peers Peers
	// Session returns the etcd session of this member's lease, or nil without a lease.
	Session func() *concurrency.Session
}

// Peers has the connections to the other members.
type Peers interface {
	// Call returns the HTTP client for a member and the URL of its internal listener.
	Call(member string) (via *http.Client, url string, err error)
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
	log  *slog.Logger

	ctx    context.Context // lifetime of all calls and goroutines; Close cancels it
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	replies replies // to the messages of all journals

	mu     sync.Mutex
	open   map[string]*guarded // protected by mu
	closed bool                // Close was called; protected by mu
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
	s := &Journals{conn: conn, js: js, opts: o, open: map[string]*guarded{}, log: o.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err = s.replies.start(conn); err == nil {
		err = s.ensureStream(ctx, natsjs.StreamConfig{
			Name:     s.baseStream(),
			Subjects: []string{snapshotSubjects + encodeToken(o.Prefix) + ".>"},
		})
	}
	if err != nil {
		err = s.wrapError(ctx, "opening journals", err) // before cancel, which would hide the reason
		s.cancel(engine.ErrClosed)
		s.replies.stop()
		return nil, err
	}
	s.wg.Go(s.poll)
	return s, nil
}

// Close cancels all calls and stops polling. The connection stays open.
func (s *Journals) Close() {
	s.mu.Lock()
	s.closed = true
	names := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	s.cancel(engine.ErrClosed)
	s.wg.Wait()
	s.replies.stop()
	for _, name := range names {
		if g := s.lookup(name); g != nil {
			j, _ := g.healthy()
			j.unsubscribe()
		}
	}
}

// start runs a function in a goroutine that Close waits for. It reports false after Close.
func (s *Journals) start(run func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(run)
	}
	return !s.closed
}

// Journal opens the named journal and creates it if it does not exist.
func (s *Journals) Journal(ctx context.Context, name string) (engine.Journal, error) {
	if name == "" || len(name) > maxNameBytes {
		return nil, fmt.Errorf("%w: journal name must have 1 to %d bytes", engine.ErrInvalid, maxNameBytes)
	}
	g, err := s.openOnce(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := g.serving(ctx); err != nil { // it may have to be rebuilt first
		return nil, err
	}
	return g, nil
}

// openOnce opens the journal, unless it is open. Concurrent calls share one attempt.
func (s *Journals) openOnce(ctx context.Context, name string) (*guarded, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s.mu.Lock()
	g := s.open[name]
	if g == nil {
		g = newGuarded(s, name)
		s.open[name] = g
		s.mu.Unlock()
		if g.openErr = g.open(ctx); g.openErr != nil {
			s.mu.Lock()
			delete(s.open, name)
			s.mu.Unlock()
			g.openErr = s.wrapError(ctx, fmt.Sprintf("opening journal %q", name), g.openErr)
		}
		close(g.opened)
		return g, g.openErr
	}
	s.mu.Unlock()
	select {
	case <-g.opened:
		return g, g.openErr
	case <-ctx.Done():
		return nil, s.wrapError(ctx, fmt.Sprintf("opening journal %q", name), context.Cause(ctx))
	}
}

// lookup returns a journal that is open, or nil.
func (s *Journals) lookup(name string) *guarded {
	s.mu.Lock()
	g := s.open[name]
	s.mu.Unlock()
	if g == nil {
		return nil
	}
	select {
	case <-g.opened:
		if g.openErr == nil {
			return g
		}
	default:
	}
	return nil
}

// Lost returns an engine.ErrJournalLost if an open journal has lost records and cannot be rebuilt at the moment. It
// asks nobody.
func (s *Journals) Lost() error {
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, g := range open {
		g.mu.Lock()
		loss, closed := g.loss, g.closed
		g.mu.Unlock()
		if loss != nil && closed {
			return g.lostError(loss)
		}
	}
	return nil
}

// Names lists the existing journals of the cluster.
func (s *Journals) Names(ctx context.Context) ([]string, error) {
	streams, err := s.streams(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, stream := range streams {
		if token, ok := strings.CutPrefix(stream, s.baseStream()+"_"); ok {
			token, _, _ = strings.Cut(token, "_") // a rebuilt stream has a generation
			names = append(names, decodeToken(token))
		}
	}
	known, err := s.opts.knownNames(ctx)
	if err != nil {
		return nil, err
	}
	names = append(names, known...)
	slices.Sort(names)
	return slices.Compact(names), nil
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
		names := slices.Collect(maps.Keys(s.open))
		s.mu.Unlock()
		for _, name := range names {
			if g := s.lookup(name); g != nil {
				ctx, cancel := context.WithTimeout(s.ctx, minTimeout)
				g.check(ctx) // the next poll may succeed
				cancel()
			}
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
