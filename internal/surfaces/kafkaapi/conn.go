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

// conn is one client connection.
type conn struct {
	server   *Server
	listener Listener
	accepted net.Conn // without TLS; any goroutine may use it
	socket   net.Conn // with TLS after the handshake; only for the connection's goroutines
	in       *bufio.Reader
	address  string // the client's address without the port
	sni      string // server name of the TLS handshake
	room     *semaphore.Weighted
	client   atomic.Pointer[Client] // software of the client; nil until it is known

	answers chan *answer
	queued  atomic.Int32 // responses that are not sent yet; only the reader adds
	cancel  context.CancelFunc
	closing atomic.Bool

	auth auth // belongs to the reader

	// Elements of the server's lists of connections that have not authenticated, and the time of
	// the accept. Server.mu protects them.
	waiting, beside *list.Element
	since           time.Time

	fetches *fetchSession // belongs to the writer; nil for none
	muted   atomic.Int64  // end of the throttling, epoch nanoseconds; nothing is read before

	// Deadlines of the socket: readEnds belongs to the reader, writeEnds to the goroutine that
	// sends.
	readEnds, writeEnds time.Time
}

// answer is a queued response. It is built after the responses before it are sent.
type answer struct {
	header
	flexible bool // the header of the response has tagged fields
	size     int  // bytes of the request
	taken    time.Time
	held     holding  // memory of the request's frame
	decoded  holding  // memory of the decoded request
	session  *session // session of the request; nil before authentication
	make     func(ctx context.Context) (encodable, error)
	reserved *holding      // memory of the response, released after it is sent; may be nil
	free     func()        // frees the buffers of the response after it is sent; may be nil
	raw      func() []byte // used instead of make for a frame without a header
	last     bool          // the connection closes after it
	soon     bool          // building it waits for nothing but the disk
}

// done releases the memory of the request.
func (a *answer) done() {
	a.held.release()
	a.decoded.release()
}

// errSilent is returned by the function that builds a response when none is to be sent.
var errSilent = errors.New("client expects no response")

func newConn(s *Server, socket net.Conn, l Listener) *conn {
	address, _, err := net.SplitHostPort(socket.RemoteAddr().String())
	if err != nil {
		address = socket.RemoteAddr().String()
	}
	return &conn{
		server: s, listener: l, accepted: socket, socket: socket, address: address,
		room:    semaphore.NewWeighted(s.opts.Limits.Memory / 4), // frames of this connection
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
		log.Debug("TLS handshake of a Kafka connection failed", slog.Any("error", err))
		return
	}
	c.in = bufio.NewReaderSize(c.socket, bufferBeforeAuth)
	written := make(chan error, 1)
	go func() { written <- c.write(ctx) }()
	err := c.read(ctx)
	if err != nil && !c.closing.Load() {
		cancel() // the client is gone, so the queued responses are not needed
	}
	close(c.answers)
	err = errors.Join(err, <-written)
	_ = c.socket.Close()
	if !quiet(err) {
		log.Info("Kafka connection ended", slog.String("reason", err.Error()), slog.String("software", c.software()))
	}
}

// software returns the name and version of the client's software, as the client reports them.
func (c *conn) software() string {
	if known := c.client.Load(); known != nil {
		return known.Name + " " + known.Version
	}
	return ""
}

// quiet reports whether the end of a connection is normal and needs no log line.
func quiet(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled)
}

// handshake performs the TLS handshake if the listener uses TLS.
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

// drain stops the connection from reading requests. Requests that were read are completed.
func (c *conn) drain() {
	c.closing.Store(true)
	_ = c.accepted.SetReadDeadline(time.Unix(1, 0))
}

// read reads requests until the connection ends.
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

// pass hands a response to the writer. If none is queued and the response takes only a moment, pass
// sends it directly, which saves waking the writer.
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

// take decodes a request and starts it.
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
		return answer{}, fmt.Errorf("client requests API %d, which is not supported", h.key)
	case h.key == keyAPIVersions && h.version > api.max:
		return answer{header: h, make: func(context.Context) (encodable, error) { return newerVersion(api), nil }}, nil
	case h.version < api.served || h.version > api.max:
		return answer{}, fmt.Errorf("client requests version %d of %s; versions %d to %d are supported", h.version,
			api.name, api.served, api.max)
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
		return answer{}, fmt.Errorf("decoding request %s version %d: %w", api.name, h.version, err)
	}
	call := &call{conn: c, session: c.auth.session, header: h, request: request}
	a := api.take(ctx, call)
	a.header, a.session, a.decoded = h, c.auth.session, decoded
	a.reserved = &call.reserved
	a.flexible = request.IsFlexible() && h.key != keyAPIVersions
	a.soon = api.soon
	return a, nil
}

var errLeftOver = errors.New("bytes follow the last field")

// decode decodes a whole body after it has reserved memory for the decoded form.
func (c *conn) decode(ctx context.Context, request kmsg.Request, body []byte) (holding, error) {
	body, memory, err := weigh(request, body)
	if err != nil {
		return holding{}, err
	}
	var held holding
	if memory > smallFrame {
		if c.auth.session == nil {
			return holding{}, errDecoded // requests before authentication have no arrays
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

// weigh returns a body in the form that the codec expects, and the memory of its decoded form.
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

// read decodes a body that measureBody has checked.
func read(request kmsg.Request, body []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding the body: %v", p)
		}
	}()
	if err := request.ReadFrom(body); err != nil {
		return fmt.Errorf("decoding the body: %w", err)
	}
	return nil
}
