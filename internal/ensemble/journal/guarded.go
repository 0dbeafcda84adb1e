package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/storage/engine"
)

// guarded is an open journal. It passes calls on to the stream that is the journal now, and verifies,
// keeps a copy of and rebuilds it when Options.Etcd is set. A call that finds a loss waits until the
// journal is rebuilt, and is then repeated on the new stream.
type guarded struct {
	s        *Journals
	name     string
	registry *registry // nil without etcd: nothing is rebuilt
	keeper   *keeper   // nil without etcd

	opened  chan struct{} // closed when open has returned
	openErr error         // of open; protected by opened

	mu        sync.Mutex
	stream    *journal      // protected by mu
	known     streamValue   // of stream, as in etcd; protected by mu
	loss      error         // why the journal does not answer; nil while it does; protected by mu
	obstacle  error         // why the last attempt to rebuild it failed; protected by mu
	closed    bool          // the loss cannot be repaired at the moment; protected by mu
	healing   bool          // heal runs; protected by mu
	changed   chan struct{} // closed when one of the above changes; protected by mu
	delivered uint64        // last position that a caller has got; protected by mu
}

var _ engine.Journal = (*guarded)(nil)

// healTimeout bounds how long a call without a deadline waits for a journal that is being rebuilt.
const healTimeout = 5 * time.Minute

func newGuarded(s *Journals, name string) *guarded {
	g := &guarded{
		s: s, name: name, registry: newRegistry(&s.opts, name), opened: make(chan struct{}),
		changed: make(chan struct{}),
	}
	if g.registry != nil {
		g.keeper = newKeeper(g)
	}
	return g
}

// open opens the stream of the journal. It creates the stream only if etcd does not know one.
func (g *guarded) open(ctx context.Context) error {
	if g.registry == nil {
		j := newJournal(g.s, g.name, "")
		g.setStream(j, streamValue{})
		if err := j.create(ctx, newIdentity()); err != nil {
			return err
		}
		return j.start(ctx)
	}
	keys, err := g.knownKeys(ctx)
	if err != nil {
		return err
	}
	if err := g.keeper.open(keys.published[g.s.opts.Member], keys.stream); err != nil {
		return err
	}
	j := g.newStream(keys.stream)
	g.setStream(j, keys.stream)
	err = j.start(ctx)
	if err == nil {
		err = g.checkEnd(ctx, j, keys)
	}
	var loss *lossError
	if errors.As(err, &loss) {
		g.lose(j, loss)
		err = nil
	}
	if err == nil && !g.s.start(g.keeper.run) {
		return engine.ErrClosed
	}
	return err
}

// knownKeys returns the journal's keys in etcd. It creates a new journal's stream and then its key: a
// stream that etcd knows is never created again, because it would be empty.
func (g *guarded) knownKeys(ctx context.Context) (*journalKeys, error) {
	keys, err := g.registry.read(ctx)
	if err != nil || keys.streamText != "" {
		return keys, err
	}
	j := newJournal(g.s, g.name, "")
	own := newIdentity()
	var id string
	err = withRetry(ctx, func(ctx context.Context) error {
		if err := j.create(ctx, own); err != nil {
			return err
		}
		info, err := j.s.info(ctx, j.stream, "") // another member may be creating it
		if err == nil {
			id = identity(info)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := g.registry.create(ctx, streamValue{ID: id}); err != nil {
		return nil, err
	}
	return g.registry.read(ctx)
}

func (g *guarded) setStream(j *journal, v streamValue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stream, g.known = j, v
}

func newIdentity() string { return strings.ToLower(rand.Text()) }

// newStream returns the stream that etcd describes. It is not started.
func (g *guarded) newStream(v streamValue) *journal {
	j := newJournal(g.s, g.name, v.Generation)
	j.id, j.accept = v.ID, g.keeper.offer
	return j
}

// checkEnd returns a lossError when the stream ends before a position that some member has reported.
func (g *guarded) checkEnd(ctx context.Context, j *journal, keys *journalKeys) error {
	needed, of := keys.needed()
	if own := g.keeper.report().Position; own > needed {
		needed, of = own, g.s.opts.Member
	}
	if tail, _ := j.knownTail(); tail.last >= needed {
		return nil
	}
	if err := j.barrier(ctx); err != nil {
		return err
	}
	tail, _ := j.knownTail()
	if tail.last >= needed {
		return nil
	}
	return &lossError{fmt.Sprintf("stream %s ends at position %d, but the copy of member %q has the records up to %d",
		j.stream, tail.last, of, needed)}
}

// needed returns the highest position that a member has reported for the present stream, and the member.
func (k *journalKeys) needed() (position uint64, of string) {
	position, of = k.stream.Position, "that rebuilt it"
	for member, p := range k.published {
		if p.Stream == k.stream.ID && p.Position > position {
			position, of = p.Position, member
		}
	}
	return position, of
}

// healthy returns the stream, and whether no loss is known.
func (g *guarded) healthy() (*journal, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stream, g.loss == nil
}

// value returns the stream's entry in etcd, as this member knows it.
func (g *guarded) value() streamValue {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known
}

// rebuiltTo returns the position up to which most members agreed when the stream was rebuilt.
func (g *guarded) rebuiltTo() uint64 { return g.value().Position }

// seen returns the last position that this member knows to be committed.
func (g *guarded) seen() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	tail, _ := g.stream.knownTail()
	return max(tail.last, g.delivered)
}

func (g *guarded) changeLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// lose records that a stream has lost records and starts to rebuild the journal.
func (g *guarded) lose(j *journal, loss *lossError) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stream != j || g.loss != nil || g.registry == nil || g.s.ctx.Err() != nil {
		return
	}
	g.s.log.Error("journal has lost records; it does not answer until it is rebuilt from the members' copies",
		slog.String("journal", g.s.opts.Prefix+"/"+g.name), slog.String("problem", loss.what))
	g.loss, g.closed = loss, false
	g.changeLocked()
	if !g.healing {
		g.healing = g.s.start(g.heal)
	}
}

// serving returns the stream. It waits while the journal is rebuilt, and returns engine.ErrJournalLost
// when that is not possible.
func (g *guarded) serving(ctx context.Context) (*journal, error) {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, healTimeout)
		defer cancel()
	}
	for {
		g.mu.Lock()
		j, loss, obstacle, closed, changed := g.stream, g.loss, g.obstacle, g.closed, g.changed
		g.mu.Unlock()
		switch {
		case g.s.ctx.Err() != nil:
			return nil, engine.ErrClosed
		case loss == nil:
			return j, nil
		case closed:
			return nil, g.lostError(fmt.Errorf("%w; %w", loss, obstacle))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errs.Newf(errs.Unavailable, "%w: %w", g.lostError(loss), ctx.Err())
		case <-g.s.ctx.Done():
		}
	}
}

func (g *guarded) lostError(loss error) error {
	return errs.Newf(errs.Unavailable, "%w: journal %q: %v", engine.ErrJournalLost, g.name, loss)
}

// do calls a function with the stream, and again with another stream when the journal was rebuilt.
func (g *guarded) do(ctx context.Context, call func(j *journal) error) error {
	for repeated := false; ; repeated = true {
		j, err := g.serving(ctx)
		if err != nil {
			return err
		}
		err = call(j)
		var loss *lossError
		if g.registry == nil || !errors.As(err, &loss) {
			if repeated && err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !isFinal(err) {
				err = errs.Newf(errs.Unavailable, "journal %q was rebuilt meanwhile; try again: %w", g.name, err)
			}
			return err
		}
		g.lose(j, loss)
	}
}

func (g *guarded) deliver(position uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delivered = max(g.delivered, position)
}

// Append implements engine.Journal.
func (g *guarded) Append(ctx context.Context, after uint64, records ...[]byte) (last uint64, err error) {
	err = g.do(ctx, func(j *journal) error {
		last, err = j.Append(ctx, after, records...)
		return err
	})
	if err != nil {
		return 0, err
	}
	g.deliver(last)
	return last, nil
}

// Last implements engine.Journal.
func (g *guarded) Last(ctx context.Context) (last uint64, err error) {
	err = g.do(ctx, func(j *journal) error {
		last, err = j.Last(ctx)
		return err
	})
	return last, err
}

// Replay implements engine.Journal.
func (g *guarded) Replay(ctx context.Context, after uint64,
	visit func(position uint64, record []byte) error,
) (uint64, error) {
	err := g.do(ctx, func(j *journal) (err error) {
		after, err = j.Replay(ctx, after, visit)
		g.deliver(after)
		return err
	})
	return after, err
}

// Wait implements engine.Journal.
func (g *guarded) Wait(ctx context.Context, after uint64) error {
	for {
		j, _ := g.healthy()
		if err := j.Wait(ctx, after); !errors.Is(err, errRetired) {
			return err
		}
	}
}

// SaveSnapshot implements engine.Journal.
func (g *guarded) SaveSnapshot(ctx context.Context, position uint64, write func(io.Writer) error) error {
	return g.do(ctx, func(j *journal) error { return j.SaveSnapshot(ctx, position, write) })
}

// LoadSnapshot implements engine.Journal.
func (g *guarded) LoadSnapshot(ctx context.Context) (position uint64, r io.ReadCloser, err error) {
	err = g.do(ctx, func(j *journal) error {
		position, r, err = j.LoadSnapshot(ctx)
		if r != nil {
			r = &guardedReader{r, ctx, g, j}
		}
		return err
	})
	if err == nil {
		g.deliver(position)
	}
	return position, r, err
}

// guardedReader reads a snapshot. When a part of the snapshot is lost, it waits until the journal is
// rebuilt, and returns an error: the caller must load the snapshot again.
type guardedReader struct {
	io.ReadCloser
	ctx context.Context // the caller's
	g   *guarded
	j   *journal
}

var errSnapshotRebuilt = errs.New(errs.Unavailable, "snapshot of the journal was damaged and is rebuilt; load it again")

// Read implements io.Reader.
func (r *guardedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	var loss *lossError
	if r.g.registry == nil || !errors.As(err, &loss) {
		return n, err
	}
	r.g.lose(r.j, loss)
	if _, err := r.g.serving(r.ctx); err != nil {
		return 0, err
	}
	return 0, errSnapshotRebuilt
}

// check detects a loss that no call has found, such as a stream that another member has replaced.
func (g *guarded) check(ctx context.Context) {
	j, ok := g.healthy()
	if !ok {
		return
	}
	tail, _ := j.knownTail()
	info, err := j.refreshTail(ctx)
	if err == nil && info.State.LastSeq < tail.seq {
		err = j.barrier(ctx) // the response may be from a former leader
	}
	var loss *lossError
	if errors.As(err, &loss) {
		g.lose(j, loss)
	}
}
