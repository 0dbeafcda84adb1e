package replicated

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/retry"
	"freshet/internal/storage/engine"
)

// callTimeout bounds one call of etcd, or one that changes something in JetStream.
const callTimeout = 3 * time.Second

// openTimeout limits the calls that open a shard. It is longer than callTimeout because nothing
// repeats them, and a member opens all its shards while etcd is busiest.
const openTimeout = 30 * time.Second

// stream is the log of a shard.
type stream struct {
	js      jetstream.JetStream
	name    string
	subject string
	handle  jetstream.Stream
	id      logID

	suspicions *suspicions
}

// metaLog is the key of the log's identity in the stream's metadata.
const metaLog = "freshet-log"

// streamName returns the name of the stream of a shard's first log.
func streamName(o *Options) string { return "S_" + o.Cluster + "_" + strconv.Itoa(o.Number) }

func streamSubject(o *Options) string { return "S." + o.Cluster + "." + strconv.Itoa(o.Number) }

// A log that replaces another one has a stream with another name and subject. A NATS server that was
// away meanwhile may still have the old stream, and must not take its messages for those of the new
// one when both have one name.

// successorName returns the name of the stream of a log that has replaced another one.
func successorName(o *Options, id logID) string { return streamName(o) + "-" + id.short() }

// newSuccessor returns the stream, which may not exist yet, of a log that replaces another one.
func newSuccessor(o *Options, id logID) *stream {
	return &stream{
		js: o.JetStream, name: successorName(o, id), subject: streamSubject(o) + "." + id.short(), id: id,
		suspicions: o.suspicions,
	}
}

// removeStreams removes all streams of a shard, but not the one with the name kept.
func removeStreams(ctx context.Context, o *Options, kept string) error {
	names := []string{streamName(o)}
	list := o.JetStream.StreamNames(ctx, jetstream.WithStreamListSubject(streamSubject(o)+".*"))
	for name := range list.Name() {
		names = append(names, name)
	}
	if err := list.Err(); err != nil {
		return err
	}
	for _, name := range names {
		if name == kept {
			continue
		}
		if err := o.JetStream.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return nil
}

// findLog finds the stream of the log with an identity. Without such a log, or with the identity "", it
// returns the stream with the name of the first log, whose identity is another one, or
// ErrStreamNotFound.
func findLog(ctx context.Context, o *Options, identity string) (*stream, error) {
	first := &stream{js: o.JetStream, name: streamName(o), subject: streamSubject(o), suspicions: o.suspicions}
	err := first.load(ctx)
	if identity == "" || err == nil && first.identity() == identity ||
		err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return first, err
	}
	id, parseErr := parseLogID(identity)
	if parseErr != nil {
		return first, fmt.Errorf("reading the identity of the log: %w", parseErr)
	}
	st := newSuccessor(o, id)
	if stErr := st.load(ctx); !errors.Is(stErr, jetstream.ErrStreamNotFound) {
		return st, stErr
	}
	return first, err
}

// load finds the stream that has the name.
func (st *stream) load(ctx context.Context) (err error) {
	st.handle, err = st.find(ctx)
	return err
}

// identity returns the identity of the log in the stream that was found, as its metadata has it.
func (st *stream) identity() string { return st.handle.CachedInfo().Config.Metadata[metaLog] }

// openStream returns the shard's log and creates it if it never existed. etcd stores the
// log's identity, so that a lost log is not mistaken for a new one.
func openStream(ctx context.Context, o *Options, key string) (*stream, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+2*leaderTimeout)
	defer cancel()
	known, err := readIdentity(ctx, o, key)
	if err != nil {
		return nil, err
	}
	st, err := findLog(ctx, o, known)
	if errors.Is(err, jetstream.ErrStreamNotFound) && known == "" {
		st.handle, err = st.create(ctx, o)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("%w: stream %s of the log is gone", engine.ErrLogLost, st.name)
	}
	if err != nil {
		return nil, fmt.Errorf("opening stream %s of the log: %w", st.name, err)
	}
	if st.id, err = parseLogID(st.identity()); err != nil {
		return nil, fmt.Errorf("%w: stream %s was not created by Freshet: %w", engine.ErrLogLost, st.name, err)
	}
	if known == "" {
		_, err := o.Etcd.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(
			clientv3.OpPut(key, st.id.String())).Commit()
		if err != nil {
			return nil, fmt.Errorf("storing the identity of the log: %w", err)
		}
		return st, nil
	}
	if known != st.id.String() {
		return nil, fmt.Errorf("%w: stream %s is log %s, but the shard's log is %s", engine.ErrLogLost,
			st.name, st.id, known)
	}
	return st, nil
}

// readIdentity reads the identity of the shard's log from etcd, "" before it has one.
func readIdentity(ctx context.Context, o *Options, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := o.Etcd.Get(ctx, key)
	if err != nil {
		return "", fmt.Errorf("reading the identity of the log: %w", err)
	}
	if len(found.Kvs) == 0 {
		return "", nil
	}
	return string(found.Kvs[0].Value), nil
}

func (st *stream) create(ctx context.Context, o *Options) (jetstream.Stream, error) {
	id, first, err := logOrigin(ctx, o.Etcd, o.keys().seed)
	if err != nil {
		return nil, err
	}
	return st.createFrom(ctx, o, id, first)
}

// createFrom creates the stream of a log whose first message has the sequence first.
func (st *stream) createFrom(ctx context.Context, o *Options, id logID, first uint64) (jetstream.Stream, error) {
	if first == 1 {
		first = 0 // JetStream's value for it
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	config := jetstream.StreamConfig{
		Name:       st.name,
		Subjects:   []string{st.subject},
		Storage:    jetstream.FileStorage,
		Retention:  jetstream.LimitsPolicy,
		Discard:    jetstream.DiscardNew,
		MaxMsgs:    -1,
		MaxBytes:   -1,
		Replicas:   o.Replicas,
		DenyDelete: true,
		FirstSeq:   first,
		Metadata:   map[string]string{metaLog: id.String()},
	}
	var handle jetstream.Stream
	err := retry.Do(ctx, retry.Backoff{Min: minQueryInterval}, func() (again bool, err error) {
		handle, err = o.JetStream.CreateStream(ctx, config)
		return isNoPeers(err), err
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another member created it
		return o.JetStream.Stream(ctx, st.name)
	}
	return handle, err
}

// codeNoPeers is the JetStream error code for too few servers for the replicas.
const codeNoPeers = 10005

// isNoPeers reports whether JetStream has too few servers for the stream. In an ensemble that
// has just started this is temporary, until the meta leader knows all servers.
func isNoPeers(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == codeNoPeers
}

// errNoMessage is returned when the log has no message at a sequence, or no longer has it.
var errNoMessage = errors.New("log has no such message")

// read returns a message from the stream's leader. A message that the leader has is
// committed; a message that it does not have may still arrive. A signal on elected announces
// a new leader; elected may be nil.
func (st *stream) read(ctx context.Context, elected <-chan struct{}, seq uint64) (record, error) {
	probe := func(ctx context.Context) error { _, err := st.js.Stream(ctx, st.name); return err }
	msg, err := queryLarge(ctx, elected, probe,
		func(ctx context.Context) (*jetstream.RawStreamMsg, error) { return st.handle.GetMsg(ctx, seq) })
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return record{}, errNoMessage
	}
	if err != nil {
		return record{}, fmt.Errorf("reading message %d of the log: %w", seq, err)
	}
	return parseRecord(msg.Sequence, msg.Header, msg.Data)
}

// find queries the stream's leader about the stream.
func (st *stream) find(ctx context.Context) (jetstream.Stream, error) {
	return queryLeader(ctx, nil,
		func(ctx context.Context) (jetstream.Stream, error) { return st.js.Stream(ctx, st.name) })
}

// state returns where the log begins and ends.
func (st *stream) state(ctx context.Context) (jetstream.StreamState, error) {
	found, err := st.find(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return jetstream.StreamState{}, fmt.Errorf("%w: stream %s of the log is gone", engine.ErrLogLost, st.name)
	}
	if err != nil {
		return jetstream.StreamState{}, fmt.Errorf("reading the state of stream %s of the log: %w", st.name, err)
	}
	info := found.CachedInfo()
	if got := info.Config.Metadata[metaLog]; got != st.id.String() {
		return jetstream.StreamState{}, fmt.Errorf("%w: stream %s was replaced", engine.ErrLogLost, st.name)
	}
	return info.State, nil
}

// errBehind means that the log no longer has the message that the store needs next.
var errBehind = errors.New("log begins after the end of the store, which needs a checkpoint of another member")

// matches returns nil when a store at the position can follow the log, errBehind when it needs a
// checkpoint, and ErrLogLost when the store is not a copy of the log.
func (st *stream) matches(ctx context.Context, m logPosition) error {
	state, err := st.state(ctx)
	if err != nil {
		return err
	}
	switch {
	case m.seq == 0 && state.FirstSeq <= 1:
		return nil
	case m.seq > 0 && m.log != st.id:
		return fmt.Errorf("%w: store is a copy of log %s, but stream %s is log %s", engine.ErrLogLost, m.log,
			st.name, st.id)
	case m.seq > state.LastSeq:
		return fmt.Errorf("%w: store has the log up to message %d, but the log ends at %d", engine.ErrLogLost,
			m.seq, state.LastSeq)
	case m.seq+1 < state.FirstSeq:
		return errBehind
	case m.seq < state.FirstSeq:
		return nil // the next message exists, and its checksum covers the ones before it
	}
	r, err := st.readGood(ctx, m.seq, func(r record) bool { return r.is(m) })
	if err != nil {
		return err
	}
	if !r.is(m) {
		return fmt.Errorf("%w: message %d of the log is not the one that the store applied",
			engine.ErrLogLost, m.seq)
	}
	return nil
}
