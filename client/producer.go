package client

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is what a Producer that is closed answers.
var ErrClosed = errors.New("the producer is closed")

// ProducerOptions say how messages are put together. The zero value is good for
// most programs.
type ProducerOptions struct {
	// Name of the producer, which consumers see.
	Name string
	// Linger is how long a message may wait for others to share a call; 5 ms when
	// zero, negative not at all.
	Linger time.Duration
	// MaxBatch is the most messages of one call; 500 when zero, at most MaxBatch.
	MaxBatch int
	// MaxBatchBytes is about the most bytes of one call; 1 MiB when zero.
	MaxBatchBytes int
	// MaxBuffered is how many messages may wait to be sent; 10,000 when zero. When
	// there are that many, Send waits.
	MaxBuffered int
	// InFlight is how many calls are made at a time; 1 when zero. With more,
	// messages with the same key can change places.
	InFlight int
	// DeliveryTimeout is how long a batch is tried when the server does not answer
	// or is busy; a minute when zero.
	DeliveryTimeout time.Duration
	// Encoder makes payloads for SendValue: schemas.Codec.ForSubject by the
	// registry, schemas.TopicCodec by the topic's own schema.
	Encoder Encoder
	// NoIdempotencyKeys leaves out the keys that messages are given. Nothing is
	// sent again then when it is not known whether it was stored: a message is
	// stored at most once.
	NoIdempotencyKeys bool
}

func (o *ProducerOptions) defaults() {
	if o.Linger == 0 {
		o.Linger = 5 * time.Millisecond
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = 500
	}
	o.MaxBatch = min(o.MaxBatch, MaxBatch)
	if o.MaxBatchBytes <= 0 {
		o.MaxBatchBytes = 1 << 20
	}
	o.MaxBatchBytes = min(o.MaxBatchBytes, maxBatchBytes)
	if o.MaxBuffered <= 0 {
		o.MaxBuffered = 10_000
	}
	if o.InFlight <= 0 {
		o.InFlight = 1
	}
	if o.DeliveryTimeout <= 0 {
		o.DeliveryTimeout = time.Minute
	}
}

// Producer sends messages in batches. It may be used by any number of goroutines
// and has InFlight of its own, which Close ends.
//
// A message is stored at least once, and, since it has an idempotency key, once:
// however often a call has to be repeated, the topic keeps the first. Messages
// with the same key keep the order in which Send was called (see InFlight).
type Producer struct {
	t       *Topic
	options ProducerOptions
	queue   chan *outgoing
	keyBase string // of idempotency keys
	keyNext atomic.Uint64

	// ctx is what messages are sent under; cancel gives up on them.
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup // the senders

	// closing guards queue: Send holds it for reading while it may send, Close for
	// writing while it closes the channel.
	closing sync.RWMutex
	closed  bool

	// mu guards what follows; nobody holds it while calling or waiting.
	mu      sync.Mutex
	pending int           // messages that are not settled
	idle    chan struct{} // closed when pending comes to 0; nil unless somebody waits
	urgent  chan struct{} // closed while somebody waits for everything to be sent
	flushes int           // how many wait
	failed  error         // of the first message without a callback since the last Flush
}

// outgoing is a message on its way.
type outgoing struct {
	message Message
	size    int
	done    func(Produced, error)
}

// NewProducer returns a Producer, which has to be closed.
func (t *Topic) NewProducer(options ProducerOptions) *Producer {
	options.defaults()
	p := &Producer{
		t: t, options: options, queue: make(chan *outgoing, options.MaxBuffered),
		keyBase: rand.Text(), urgent: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for range options.InFlight {
		p.done.Go(p.send)
	}
	return p
}

// Send hands over a message, which must not be changed any more. It waits when
// the buffer is full, until ctx ends. When the message is stored or given up, done
// is called, unless it is nil, on a goroutine of the Producer: it should be quick
// and must not call Send. Errors of messages without done come out of Flush.
func (p *Producer) Send(ctx context.Context, m Message, done func(Produced, error)) error {
	if p.t.err != nil {
		return p.t.err
	}
	if m.IdempotencyKey == "" && !p.options.NoIdempotencyKeys {
		m.IdempotencyKey = p.keyBase + "-" + strconv.FormatUint(p.keyNext.Add(1), 36)
	}
	p.closing.RLock()
	defer p.closing.RUnlock()
	if p.closed {
		return ErrClosed
	}
	p.mu.Lock()
	p.pending++
	p.mu.Unlock()
	select {
	case p.queue <- &outgoing{message: m, size: m.size(), done: done}:
		return nil
	case <-ctx.Done():
		p.settled(1)
		return context.Cause(ctx)
	}
}

// Encoder makes a message's payload of a value: it sets Value, and SchemaVersion
// where the payload has one.
type Encoder interface {
	EncodeMessage(ctx context.Context, value any, into *Message) error
}

// SendValue is Send for a value, which the Producer's Encoder makes the payload
// of. What cannot be encoded is an error here, and nothing is sent.
func (p *Producer) SendValue(ctx context.Context, value any, m Message, done func(Produced, error)) error {
	if p.options.Encoder == nil {
		return errors.New("the producer has no encoder for values: set ProducerOptions.Encoder")
	}
	if err := p.options.Encoder.EncodeMessage(ctx, value, &m); err != nil {
		return err
	}
	return p.Send(ctx, m, done)
}

// Produce sends a message and waits until it is stored. When ctx ends first the
// message may be stored nevertheless.
func (p *Producer) Produce(ctx context.Context, m Message) (Produced, error) {
	result := make(chan Result, 1)
	if err := p.Send(ctx, m, func(produced Produced, err error) { result <- Result{produced, err} }); err != nil {
		return Produced{}, err
	}
	select {
	case r := <-result:
		return r.Produced, r.Err
	case <-ctx.Done():
		return Produced{}, context.Cause(ctx)
	}
}

// Flush waits until every message that was handed over before is stored or given
// up. It returns the first error of those that had no callback.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	if p.pending > 0 {
		if p.idle == nil {
			p.idle = make(chan struct{})
		}
		idle := p.idle
		if p.flushes++; p.flushes == 1 {
			close(p.urgent)
		}
		p.mu.Unlock()
		var err error
		select {
		case <-idle:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		p.mu.Lock()
		if p.flushes--; p.flushes == 0 {
			p.urgent = make(chan struct{})
		}
		if err != nil {
			p.mu.Unlock()
			return err
		}
	}
	err := p.failed
	p.failed = nil
	p.mu.Unlock()
	return err
}

// Close sends what waits, as Flush does, and ends the Producer. When ctx ends
// first, what is not stored is given up. Closing twice is no error.
func (p *Producer) Close(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.cancel)
	defer stop()
	// Whoever waits for room holds the lock for reading; sending what is queued, or
	// giving it up, makes room.
	p.closing.Lock()
	if !p.closed {
		p.closed = true
		close(p.queue)
	}
	p.closing.Unlock()
	err := p.Flush(ctx)
	p.cancel()
	p.done.Wait()
	return err
}

// settled counts messages that are stored or given up.
func (p *Producer) settled(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending -= n; p.pending == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// send is one goroutine that makes calls.
func (p *Producer) send() {
	var left *outgoing // did not fit into the last batch
	for {
		first := left
		if first == nil {
			var open bool
			if first, open = <-p.queue; !open {
				return
			}
		}
		var batch []*outgoing
		batch, left = p.collect(first)
		p.deliver(batch)
	}
}

// collect puts a batch together: what is there, and what comes while the first
// may wait. What does not fit any more is returned, too.
func (p *Producer) collect(first *outgoing) (batch []*outgoing, left *outgoing) {
	batch, size := []*outgoing{first}, first.size
	p.mu.Lock()
	urgent := p.urgent
	p.mu.Unlock()
	var linger <-chan time.Time
	if p.options.Linger > 0 {
		timer := time.NewTimer(p.options.Linger)
		defer timer.Stop()
		linger = timer.C
	}
	for len(batch) < p.options.MaxBatch && size < p.options.MaxBatchBytes {
		var next *outgoing
		var open bool
		select {
		case next, open = <-p.queue:
		default:
			if linger == nil {
				return batch, nil
			}
			select {
			case next, open = <-p.queue:
			case <-linger:
				return batch, nil
			case <-urgent:
				linger = nil
				continue
			}
		}
		if !open {
			return batch, nil
		}
		if size += next.size; size > p.options.MaxBatchBytes {
			return batch, next
		}
		batch = append(batch, next)
	}
	return batch, nil
}
