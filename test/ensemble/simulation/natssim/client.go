package natssim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// JetStream returns the real JetStream client of a connection, except for ordered consumers: those of
// the client hold a lock while they wait for a response, and simulated time stands still while a
// goroutine waits for a lock.
func (l *Link) JetStream(conn *nats.Conn) (jetstream.JetStream, error) {
	real, err := jetstream.New(conn)
	return &client{real, l}, err
}

type client struct {
	jetstream.JetStream
	link *Link
}

// Stream implements jetstream.JetStream.
func (c *client) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	real, err := c.JetStream.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return &clientStream{real, c.link}, nil
}

// CreateStream implements jetstream.JetStream.
func (c *client) CreateStream(ctx context.Context, config jetstream.StreamConfig) (jetstream.Stream, error) {
	real, err := c.JetStream.CreateStream(ctx, config)
	if err != nil {
		return nil, err
	}
	return &clientStream{real, c.link}, nil
}

type clientStream struct {
	jetstream.Stream
	link *Link
}

// OrderedConsumer implements jetstream.Stream.
func (s *clientStream) OrderedConsumer(
	_ context.Context, o jetstream.OrderedConsumerConfig,
) (jetstream.Consumer, error) {
	return &clientConsumer{link: s.link, stream: s.CachedInfo().Config.Name, next: o.OptStartSeq}, nil
}

type clientConsumer struct {
	jetstream.Consumer
	link   *Link
	stream string
	next   uint64
}

// Messages implements jetstream.Consumer.
func (c *clientConsumer) Messages(...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	return &messages{c: c, stopped: make(chan struct{})}, nil
}

// CachedInfo implements jetstream.Consumer. A consumer reads the leader's replica.
func (c *clientConsumer) CachedInfo() *jetstream.ConsumerInfo {
	c.link.s.mu.Lock()
	defer c.link.s.mu.Unlock()
	info := &jetstream.ConsumerInfo{Stream: c.stream, Cluster: &jetstream.ClusterInfo{Name: "sim"}}
	if st := c.link.s.streams[c.stream]; st != nil {
		info.Cluster.Leader = serverName(st.leader)
	}
	return info
}

type messages struct {
	jetstream.MessagesContext
	c       *clientConsumer
	once    sync.Once
	stopped chan struct{}
}

// Stop implements jetstream.MessagesContext.
func (m *messages) Stop() { m.once.Do(func() { close(m.stopped) }) }

// errNoHeartbeat is what a consumer returns when the servers do not respond.
var errNoHeartbeat = errors.New("no heartbeat received")

// Next implements jetstream.MessagesContext.
func (m *messages) Next(...jetstream.NextOpt) (jetstream.Msg, error) {
	silence := 0
	for {
		found, heard, grown, delay := m.c.link.poll(m.c.stream, m.c.next)
		if heard {
			silence = 0
		} else if silence++; silence > 20 {
			return nil, errNoHeartbeat
		}
		if found != nil {
			grown = nil
		} else {
			delay = 100 * time.Millisecond
		}
		select {
		case <-m.stopped:
			return nil, jetstream.ErrMsgIteratorClosed
		case <-grown:
		case <-time.After(delay):
		}
		if found != nil {
			m.c.next = found.seq + 1
			return &delivery{stored: found}, nil
		}
	}
}

// poll returns the next message of a stream as its leader has it, whether the leader responds, a channel
// that is closed when the stream grows, and how long the message is on its way.
func (l *Link) poll(name string, next uint64) (m *message, heard bool, grown <-chan struct{}, delay time.Duration) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	st := l.s.streams[name]
	if st == nil || l.cut || l.s.closed || st.leaderless > 0 {
		return nil, false, nil, 0
	}
	return st.next(next, ">", st.leader), true, st.grown, l.s.latencyLocked() / 4
}

// delivery is a delivered message.
type delivery struct {
	jetstream.Msg
	stored *message
}

// Metadata implements jetstream.Msg.
func (d *delivery) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Stream: d.stored.seq}, Timestamp: d.stored.at}, nil
}

// Headers implements jetstream.Msg.
func (d *delivery) Headers() nats.Header { return parseHeader(d.stored.header) }

// Data implements jetstream.Msg.
func (d *delivery) Data() []byte { return d.stored.data }
