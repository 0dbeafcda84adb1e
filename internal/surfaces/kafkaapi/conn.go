package kafkaapi

import (
	"bufio"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/semaphore"
)

// conn is one connection of a client.
type conn struct {
	server   *Server
	listener Listener
	accepted net.Conn // below TLS; for any goroutine
	socket   net.Conn // the connection's own goroutines'; TLS, once it is spoken
	in       *bufio.Reader
	address  string // of the client, without the port
	sni      string // the name that the client sent with TLS
	room     *semaphore.Weighted
	client   atomic.Pointer[Client] // what the client says it is; nil before

	answers chan *answer
	queued  atomic.Int32 // answers that are not sent yet; the reader alone adds some
	cancel  context.CancelFunc
	closing atomic.Bool

	auth auth // the reader's

	// Among the server's strangers, and those of its address, and since when;
	// Server.mu guards it.
	waiting, beside *list.Element
	since           time.Time

	fetches *fetchSession // the writer's; nil for none
	muted   atomic.Int64  // until when nothing is read, nanoseconds since the epoch

	// The deadlines that the socket has: the reader's, and that of who sends.
	readEnds, writeEnds time.Time
}

// answer is a response that is due. It is made when those before it are sent.
type answer struct {
	header
	flexible bool // the response's header has tags
	size     int  // of the request
	taken    time.Time
	held     holding  // of it
	decoded  holding  // of what it was decoded into
	session  *session // that the request was taken in; nil before there is one
	make     func(ctx context.Context) (encodable, error)
	reserved *holding      // memory that making it took, to go back when it is sent; may be nil
	free     func()        // gives back the buffers of the response when it is sent; may be nil
	raw      func() []byte // instead of make: a bare frame
	last     bool          // the connection ends behind it
	soon     bool          // nobody else is waited for, but the disk
}

// done gives back what the request held.
func (a *answer) done() {
	a.held.release()
	a.decoded.release()
}

// errSilent is what an answer's make returns when nothing is to be sent.
var errSilent = errors.New("no answer is wanted")

func newConn(s *Server, socket net.Conn, l Listener) *conn {
	address, _, err := net.SplitHostPort(socket.RemoteAddr().String())
	if err != nil {
		address = socket.RemoteAddr().String()
	}
	return &conn{
		server: s, listener: l, accepted: socket, socket: socket, address: address,
		room:    semaphore.NewWeighted(s.opts.Limits.Memory / 4), // of requests
		answers: make(chan *answer, pendingAnswers),
	}
}

// serve runs the connection until it ends.
func (c *conn) serve() {
	ctx, cancel := context.WithCancel(c.server.ctx)
	c.cancel = cancel
	defer cancel()
	log := c.server.opts.Logger.With(slog.String("client", c.socket.RemoteAddr().String()))
	if err := c.handshake(ctx); err != nil {
		_ = c.socket.Close()
		log.Debug("TLS handshake of a stream connection failed", slog.String("error", err.Error()))
		return
	}
	c.in = bufio.NewReaderSize(c.socket, bufferBeforeAuth)
	written := make(chan error, 1)
	go func() { written <- c.write(ctx) }()
	err := c.read(ctx)
	if err != nil && !c.closing.Load() {
		cancel() // the client is gone: nobody waits for what is not sent yet
	}
	close(c.answers)
	err = errors.Join(err, <-written)
	_ = c.socket.Close()
	if !quiet(err) {
		log.Info("stream connection ended", slog.String("reason", err.Error()), slog.String("software", c.software()))
	}
}

// software is what the client says it is.
func (c *conn) software() string {
	if known := c.client.Load(); known != nil {
		return known.Name + " " + known.Version
	}
	return ""
}

// quiet says that an end of a connection needs no words.
func quiet(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled)
}

// handshake speaks TLS where the listener does.
func (c *conn) handshake(ctx context.Context) error {
	if c.listener.TLS == nil {
		return nil
	}
	secured := tls.Server(c.socket, c.listener.TLS)
	ctx, cancel := context.WithTimeout(ctx, authTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		return err
	}
	c.socket, c.sni = secured, secured.ConnectionState().ServerName
	return nil
}

// drain makes the connection take no more requests; those that were taken are
// answered.
func (c *conn) drain() {
	c.closing.Store(true)
	_ = c.accepted.SetReadDeadline(time.Unix(1, 0))
}

// read takes requests until the connection ends.
func (c *conn) read(ctx context.Context) error {
	started := time.Now()
	for {
		limit, patience := c.server.opts.Limits.Frame, idleTimeout
		if c.auth.session == nil {
			limit, patience = frameBeforeAuth, time.Until(started.Add(authTimeout))
		}
		if err := c.mute(ctx); err != nil {
			return err
		}
		frame, held, err := c.readFrame(ctx, limit, patience)
		if c.closing.Load() {
			return io.EOF
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && c.auth.session != nil {
				return io.EOF // idle
			}
			return err
		}
		a, err := c.take(ctx, frame)
		if err != nil {
			held.release()
			return err
		}
		a.held, a.size, a.taken = held, len(frame), time.Now()
		last := a.last
		if err := c.pass(ctx, &a); err != nil || last {
			return err
		}
	}
}

// pass has an answer sent behind those before it: by the writer, or at once when there
// are none and making it takes no more than a moment, which saves waking the writer.
func (c *conn) pass(ctx context.Context, a *answer) error {
	if a.soon && c.queued.Load() == 0 {
		defer a.done()
		return c.send(ctx, a)
	}
	c.queued.Add(1)
	select {
	case c.answers <- a:
		return nil
	case <-ctx.Done():
		a.done()
		return ctx.Err()
	}
}

// take decodes a request and begins it.
func (c *conn) take(ctx context.Context, frame []byte) (answer, error) {
	if c.auth.raw {
		return c.auth.takeRaw(ctx, c, frame)
	}
	h, body, err := readHeader(frame)
	if err != nil {
		return answer{}, err
	}
	api, known := c.server.apis[h.key]
	switch {
	case !known:
		return answer{}, fmt.Errorf("client asks for API %d, which is not served", h.key)
	case h.key == keyAPIVersions && h.version > api.max:
		return answer{header: h, make: func(context.Context) (encodable, error) { return newerVersion(api), nil }}, nil
	case h.version < api.served || h.version > api.max:
		return answer{}, fmt.Errorf("client asks for version %d of %s; %d to %d are served", h.version, api.name,
			api.served, api.max)
	}
	request := kmsg.RequestForKey(h.key)
	request.SetVersion(h.version)
	if request.IsFlexible() {
		if body, err = skipTags(body); err != nil {
			return answer{}, err
		}
	}
	if err := c.auth.admits(ctx, c, &h); err != nil {
		return answer{}, err
	}
	decoded, err := c.decode(ctx, request, body)
	if err != nil {
		return answer{}, fmt.Errorf("request %s version %d: %w", api.name, h.version, err)
	}
	call := &call{conn: c, session: c.auth.session, header: h, request: request}
	a := api.take(ctx, call)
	a.header, a.session, a.decoded = h, c.auth.session, decoded
	a.reserved = &call.reserved
	a.flexible = request.IsFlexible() && h.key != keyAPIVersions
	a.soon = api.soon
	return a, nil
}

var errLeftOver = errors.New("bytes follow its last field")

// decode reads a body, all of it, once there is room for what it stands for.
func (c *conn) decode(ctx context.Context, request kmsg.Request, body []byte) (holding, error) {
	body, memory, err := weigh(request, body)
	if err != nil {
		return holding{}, err
	}
	var held holding
	if memory > smallFrame {
		if c.auth.session == nil {
			return holding{}, errDecoded // what strangers send has no arrays
		}
		if held, err = c.hold(ctx, c.server.decoded, int64(memory)); err != nil {
			return holding{}, err
		}
	}
	if err := read(request, body); err != nil {
		held.release()
		return holding{}, err
	}
	return held, nil
}

// weigh returns a body as the codec has to see it, and what it takes in memory.
func weigh(request kmsg.Request, body []byte) (exact []byte, memory int, err error) {
	shape := shapeOf(request.Key(), request.GetVersion())
	memory, err = skim(shape, body)
	if shorter, ok := unpadded(request, body); ok && errors.Is(err, errLeftOver) {
		if small, fits := skim(shape, shorter); fits == nil {
			return shorter, small, nil
		}
	}
	return body, memory, err
}

// read has the codec read a body that was looked at.
func read(request kmsg.Request, body []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("body cannot be read: %v", p)
		}
	}()
	if err := request.ReadFrom(body); err != nil {
		return fmt.Errorf("body cannot be read: %w", err)
	}
	return nil
}
