package sharded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/ensemble/remote"
	"freshet/internal/ensemble/sharded"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/enginetest"
	"freshet/internal/storage/pebble"
)

const shards = 3

// skipped lists tests that hold in one shard only; see TestDeadLettersOfAnotherShard.
var skipped = []string{"after its last delivery a message moves to the dead letter topic"}

func TestConformanceOfOwnedShards(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, enginetest.Options{Skip: skipped}, func(testing.TB) enginetest.Store {
		return &store{fs: vfs.NewCrashableMem()}
	})
}

func TestConformanceOfRemoteShards(t *testing.T) {
	t.Parallel()
	opts := enginetest.Options{Skip: append([]string{"a cancelled caller loses nothing"}, skipped...)}
	enginetest.Run(t, opts, func(testing.TB) enginetest.Store {
		return &store{fs: vfs.NewCrashableMem(), elsewhere: true}
	})
}

// store has three shards and the journals of all members on one file system in memory. With
// elsewhere it is used by a member that owns none of the shards.
type store struct {
	fs        *vfs.MemFS
	elsewhere bool
	opened    *stack
}

type stack struct {
	engine.Engine
	parts  []*pebble.Engine
	server *http.Server
	client *http.Client
}

func (s *store) Open(t testing.TB) engine.Engine {
	t.Helper()
	opened := &stack{}
	owner := &owner{}
	for i := range shards + 1 {
		e, err := pebble.Open(fmt.Sprint("store", i), pebble.Options{
			FS: s.fs, Splitter: enginetest.Lines{}, EraBytes: 1 << 10, MemTableBytes: 1 << 20,
			DeadLetters: opened,
		})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		opened.parts = append(opened.parts, e)
	}
	owner.engines = opened.parts[:shards]
	opts := sharded.Options{Cluster: "c", Member: "a", Journals: opened.parts[shards]}
	for i := range shards {
		opts.Shards = append(opts.Shards, &shard{owner: owner, number: i, here: !s.elsewhere})
	}
	if s.elsewhere {
		listener := newPipes()
		opened.server = &http.Server{
			Handler:   remote.NewServer(owner, slog.New(slog.DiscardHandler)),
			Protocols: new(http.Protocols),
		}
		opened.server.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = opened.server.Serve(listener) }()
		transport := &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return listener.dial() },
			Protocols:   new(http.Protocols),
		}
		transport.Protocols.SetUnencryptedHTTP2(true)
		opened.client = &http.Client{Transport: transport}
		opts.Member = "b"
		opts.Remote = &remote.Client{Peers: opened}
	}
	opened.Engine = sharded.New(opts)
	s.opened = opened
	return opened
}

// Call implements remote.Peers.
func (s *stack) Call(string) (via *http.Client, url string, err error) {
	return s.client, "http://a", nil
}

// AppendBatch calls the owner's engine; every other method uses the remote member.
func (s *stack) AppendBatch(ctx context.Context, id engine.TopicID, partition int32, run engine.MessageBatch,
	attributes []engine.AttributeWrite,
) (engine.PendingAppend, error) {
	return s.parts[id%shards].AppendBatch(ctx, id, partition, run, attributes)
}

// SelectWith also sets the selector of the owner's engines.
func (s *stack) SelectWith(selector engine.Selector) {
	s.Engine.SelectWith(selector)
	for _, part := range s.parts {
		part.SelectWith(selector)
	}
}

// Close also closes the connections.
func (s *stack) Close() error {
	err := s.Engine.Close()
	for _, part := range s.parts {
		err = errors.Join(err, part.Close())
	}
	if s.server != nil {
		s.client.CloseIdleConnections()
		err = errors.Join(err, s.server.Close())
	}
	return err
}

// Crash keeps synced data and a random part of the unsynced data.
func (s *store) Crash(t testing.TB) {
	t.Helper()
	s.fs = s.fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: rand.IntN(101),
		RNG:                 rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	})
	if err := s.opened.Close(); err != nil {
		t.Fatalf("close after a crash: %v", err)
	}
}

// owner is a member that owns all shards.
type owner struct{ engines []*pebble.Engine }

func (o *owner) Owned(_ string, n int) (engine.Engine, engine.Owner, error) {
	return o.engines[n], engine.Owner{Member: "a", Epoch: 1}, nil
}

// shard is a shard as seen by its owner (here) or by another member.
type shard struct {
	owner  *owner
	number int
	here   bool
}

func (s *shard) Engine() (engine.Engine, error) {
	if !s.here {
		return nil, engine.ErrNotOwner
	}
	return s.owner.engines[s.number], nil
}

func (s *shard) Owner() engine.Owner { return engine.Owner{Member: "a", Epoch: 1} }
func (s *shard) Health() error       { return nil }
func (s *shard) Close() error        { return nil }

func (s *shard) Checkpoint(ctx context.Context, dir string) error {
	return s.owner.engines[s.number].Checkpoint(ctx, dir)
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) dial() (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
