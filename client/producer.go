package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is the error of a closed Producer.
var ErrClosed = errors.New("producer is closed")

// ProducerOptions configure a Producer. The zero value is suitable for most programs.
type ProducerOptions struct {
	// Name is the name of the producer, which consumers see.
	Name string
	// Linger is how long a message waits for others in the same batch; 5 ms when zero, no
	// wait when negative.
	Linger time.Duration
	// MaxBatch is the maximum number of messages in one call; 500 when zero, at most
	// MaxBatch.
	MaxBatch int
	// MaxBatchBytes is the approximate maximum size of one call; 1 MiB when zero.
	MaxBatchBytes int
	// MaxBuffered is the size of the buffer in messages; 10,000 when zero. Send blocks when
	// the buffer is full.
	MaxBuffered int
	// InFlight is the number of concurrent calls; 1 when zero. With more than one, messages
	// with the same key may be reordered.
	InFlight int
	// DeliveryTimeout is how long a batch is retried when the server does not respond or is
	// busy; one minute when zero.
	DeliveryTimeout time.Duration
	// Encoder encodes the values of SendValue: schemas.Codec.ForSubject with the registry,
	// schemas.TopicCodec with the topic's own schema.
	Encoder Encoder
	// NoIdempotencyKeys disables the generated idempotency keys. The Producer then does not
	// retry a message that may be stored, so a message is stored at most once.
	NoIdempotencyKeys bool
}

func (o *ProducerOptions) defaults() {
	o.Linger = cmp.Or(o.Linger, 5*time.Millisecond)
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

// Producer sends messages in batches. It is safe for concurrent use. It starts InFlight
// goroutines, which Close stops.
//
// Because every message has an idempotency key, the topic stores it once, also if a call is
// retried. Messages with the same key keep the order of the Send calls (see InFlight).
type Producer struct {
	t       *Topic
	options ProducerOptions
	queue   chan *outgoing
	keyBase string // prefix of the idempotency keys
	keyNext atomic.Uint64

	// ctx is the context of the calls; cancel aborts them.
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup // the senders

	// closing protects closed and the queue against its closing: Send holds the read lock
	// while it sends to the channel, Close the write lock while it closes it.
	closing sync.RWMutex
	closed  bool

	// mu protects the fields below. It is not held while calling or waiting.
	mu      sync.Mutex
	pending int           // number of messages that are neither stored nor failed
	idle    chan struct{} // closed when pending becomes 0; nil unless Flush waits
	urgent  chan struct{} // closed while a Flush waits, so that batches do not linger
	flushes int           // number of waiting Flush calls
	failed  error         // of the first message without a callback since the last Flush
}

// outgoing is a message that is not stored yet.
type outgoing struct {
	message Message
	size    int
	done    func(Produced, error)
}

// NewProducer returns a Producer. The caller must close it.
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

// Send queues a message, which the caller must not change any more. It blocks while the buffer
// is full, until ctx is canceled. When the message is stored or has failed, the Producer calls
// done on one of its goroutines. done may be nil. It should return quickly and must not call
// Send. Flush returns the errors of messages without done.
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

// Encoder encodes a value as a message's payload: it sets Value, and SchemaVersion if the
// payload has one.
type Encoder interface {
	EncodeMessage(ctx context.Context, value any, into *Message) error
}

// SendValue is Send for a value that the Producer's Encoder encodes. If it cannot be encoded,
// SendValue returns the error and sends nothing.
func (p *Producer) SendValue(ctx context.Context, value any, m Message, done func(Produced, error)) error {
	if p.options.Encoder == nil {
		return errors.New("producer has no encoder for values; set ProducerOptions.Encoder")
	}
	if err := p.options.Encoder.EncodeMessage(ctx, value, &m); err != nil {
		return err
	}
	return p.Send(ctx, m, done)
}

// Produce sends a message and waits until it is stored. If ctx is canceled first, the message
// may be stored or not.
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

// Flush waits until every queued message is stored or has failed. It returns the first error
// of the messages without a callback.
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

// Close sends the queued messages, like Flush, and stops the Producer. If ctx is canceled
// first, the remaining messages fail. A second Close is not an error.
func (p *Producer) Close(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.cancel)
	defer stop()
	// A Send that waits for the buffer holds the read lock. It continues when the senders
	// have taken messages from the queue.
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

// settled counts n messages as stored or failed.
func (p *Producer) settled(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending -= n; p.pending == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// send sends batches until the queue is closed and empty. It runs on its own goroutine.
func (p *Producer) send() {
	var left *outgoing // message that did not fit into the last batch
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

// collect collects a batch: the queued messages, and those that arrive within Linger. It also
// returns a message that does not fit into the batch.
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
