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
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/identity/access"
)

// conn is one client connection.
type conn struct {
	server   *Server
	listener Listener
	accepted net.Conn // without TLS; any goroutine may use it
	socket   net.Conn // with TLS after the handshake; only for the connection's goroutines
	in       *bufio.Reader
	address  string                 // the client's address without the port
	sni      string                 // server name of the TLS handshake
	id       uint64                 // number of the connection, from 1 on
	client   atomic.Pointer[Client] // software of the client; nil until it is known

	responses       chan *pendingResponse
	waiting         sync.WaitGroup // queued responses that may wait for other clients; only the reader adds and waits
	queuedResponses atomic.Int32   // responses that are not sent yet; only the reader adds
	cancel          context.CancelFunc
	ended           <-chan struct{} // closed when the client is gone or the server stops
	closing         atomic.Bool

	auth         auth         // belongs to the reader
	uncounted    atomic.Int64 // bytes of requests that take no room
	preAuthBytes int64        // memory of a request before authentication; belongs to the reader

	// Elements of the server's lists of connections that have not authenticated, and the time of
	// the accept. Server.mu protects them.
	waitingElement, addressElement *list.Element
	acceptedAt                     time.Time

	fetchSession   *fetchSession // belongs to the writer; nil for none
	shareSession   *shareSession // belongs to the writer; nil for none
	throttledUntil atomic.Int64  // end of the throttling, epoch nanoseconds; nothing is read before

	// Deadlines of the socket: readDeadline belongs to the reader, writeDeadline to the goroutine that
	// sends.
	readDeadline, writeDeadline time.Time
}

// pendingResponse is a queued response. It is built after the responses before it are sent.
type pendingResponse struct {
	header
	flexible    bool // the header of the response has tagged fields
	requestSize int  // bytes of the request
	receivedAt  time.Time
	requestRoom reservation // room of the request
	prepaid     int64       // part of requestRoom for the response
	session     *session    // session of the request; nil before authentication
	build       func(ctx context.Context) (encodable, error)
	room        *responseRoom // room of the response, released after it is sent; may be nil
	repeatable  bool          // build may be called again; it needs a permit of describeLimiter
	free        func()        // frees the buffers of the response after it is sent; may be nil
	raw         func() []byte // used instead of make for a frame without a header
	closeAfter  bool          // the connection closes after it
	waits       bool          // building it may wait for other clients
	immediate   bool          // building it waits for nothing but the disk
}

// errNoResponse is returned by the function that builds a response when none is to be sent.
var errNoResponse = errors.New("client expects no response")

func newConn(s *Server, socket net.Conn, l Listener) *conn {
	address, _, err := net.SplitHostPort(socket.RemoteAddr().String())
	if err != nil {
		address = socket.RemoteAddr().String()
	}
	return &conn{
		server: s, listener: l, accepted: socket, socket: socket, address: address,
		id:        s.lastConnection.Add(1),
		responses: make(chan *pendingResponse, maxPendingResponses),
	}
}

// serve runs the connection until it ends.
func (c *conn) serve() {
	ctx, cancel := context.WithCancel(c.server.ctx)
	c.cancel, c.ended = cancel, ctx.Done()
	defer cancel()
	log := c.server.opts.Logger.With(slog.String("client", c.socket.RemoteAddr().String()))
	if err := c.handshake(ctx); err != nil {
		_ = c.socket.Close()
		log.Debug("TLS handshake of a Kafka connection failed", slog.Any("error", err))
		return
	}
	c.in = bufio.NewReaderSize(c.socket, readBufferSizeBeforeAuth)
	if err := c.auth.startAnonymous(ctx, c); err != nil {
		// The client may still send credentials. A request without them reports the error.
		log.Debug("anonymous session of a Kafka connection cannot start", slog.Any("error", err))
	}
	written := make(chan error, 1)
	go func() { written <- c.write(ctx) }()
	err := c.read(ctx)
	if err != nil && !c.closing.Load() {
		cancel() // the client is gone, so the queued responses are not needed
	}
	close(c.responses)
	err = errors.Join(err, <-written)
	_ = c.socket.Close()
	if !isNormalEnd(err) {
		log.Info("Kafka connection ended", slog.String("reason", err.Error()), slog.String("software", c.software()))
	}
}

// hasEnded reports whether the client is gone or the server stops, so that nobody reads the responses.
func (c *conn) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// software returns the name and version of the client's software, as the client reports them.
func (c *conn) software() string {
	if known := c.client.Load(); known != nil {
		return known.Name + " " + known.Version
	}
	return ""
}

// isNormalEnd reports whether the end of a connection is normal and needs no log line.
func isNormalEnd(err error) bool {
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
		limit, timeout := c.server.opts.Limits.MaxFrame, idleTimeout
		if c.auth.session == nil {
			limit, timeout = maxFrameBeforeAuth, time.Until(started.Add(authTimeout))
		}
		if err := c.waitWhileThrottled(ctx); err != nil {
			return err
		}
		frame, held, err := c.readFrame(ctx, limit, timeout)
		if c.closing.Load() {
			c.releasePreAuth()
			held.release()
			return io.EOF
		}
		if err != nil {
			c.releasePreAuth()
			if errors.Is(err, os.ErrDeadlineExceeded) && c.auth.session != nil {
				return io.EOF // idle
			}
			return err
		}
		a, err := c.beginRequest(ctx, frame, &held)
		c.releasePreAuth()
		if err != nil {
			held.release()
			return err
		}
		a.requestRoom, a.requestSize, a.receivedAt = held, len(frame), time.Now()
		last := a.closeAfter
		if err := c.dispatch(ctx, &a); err != nil || last {
			return err
		}
	}
}

// dispatch hands a response to the writer. If none is queued and the response takes only a moment, pass
// sends it directly, which saves waking the writer.
func (c *conn) dispatch(ctx context.Context, a *pendingResponse) error {
	if a.immediate && c.queuedResponses.Load() == 0 {
		defer a.requestRoom.release()
		return c.send(ctx, a)
	}
	c.queuedResponses.Add(1)
	if a.waits {
		c.waiting.Add(1)
	}
	select {
	case c.responses <- a:
		return nil
	case <-ctx.Done():
		a.requestRoom.release()
		return ctx.Err()
	}
}

// beginRequest decodes a request and starts it. held is the room of the frame, to which it adds that of the
// decoded form.
func (c *conn) beginRequest(ctx context.Context, frame []byte, held *reservation) (pendingResponse, error) {
	if c.auth.raw {
		return c.auth.handleRaw(ctx, c, frame)
	}
	h, body, err := readHeader(frame)
	if err != nil {
		return pendingResponse{}, err
	}
	api, known := c.server.apis[h.key]
	switch {
	case !known:
		return pendingResponse{}, fmt.Errorf("client requests API %d, which is not supported", h.key)
	case h.key == keyAPIVersions && h.version > api.max:
		return pendingResponse{
			header: h,
			build:  func(context.Context) (encodable, error) { return newerVersion(api), nil },
		}, nil
	case h.version < api.minSupported || h.version > api.max:
		return pendingResponse{},
			fmt.Errorf("client requests version %d of %s; versions %d to %d are supported", h.version,
				api.name, api.minSupported, api.max)
	}
	request := kmsg.RequestForKey(h.key)
	request.SetVersion(h.version)
	if request.IsFlexible() {
		if body, err = skipTags(body); err != nil {
			return pendingResponse{}, err
		}
	}
	if err := c.auth.checkAllowed(ctx, c, &h); err != nil {
		return pendingResponse{}, err
	}
	decoded, err := c.decode(ctx, request, body, held)
	if err != nil {
		return pendingResponse{}, fmt.Errorf("decoding request %s version %d: %w", api.name, h.version, err)
	}
	call := &call{conn: c, session: c.auth.session, header: h, request: request}
	a := api.begin(ctx, call)
	a.header, a.session, a.prepaid = h, c.auth.session, max(held.bytes-int64(len(frame)+decoded/2), 0)
	if call.session != nil {
		call.room.conn, call.room.session = c, call.session
		a.room = &call.room
	}
	a.flexible = request.IsFlexible() && h.key != keyAPIVersions
	a.immediate, a.waits = api.immediate, api.waits
	return a, nil
}

var errTrailingBytes = errors.New("bytes follow the last field")

// decode decodes a whole body after it has taken room for the decoded form, whose size it returns.
func (c *conn) decode(ctx context.Context, request kmsg.Request, body []byte, held *reservation) (int, error) {
	body, memory, err := measureBody(request, body)
	if err != nil {
		return 0, err
	}
	if memory > uncountedBytes {
		if c.auth.session == nil {
			return 0, errDecoded // requests before authentication have no arrays
		}
		if err := c.reserveDecoded(ctx, request, len(body)+memory, held); err != nil {
			return 0, err
		}
	}
	return memory, decodeBody(request, body)
}

// reserveDecoded raises the room of a request to that of its frame and its decoded form, n bytes together.
func (c *conn) reserveDecoded(ctx context.Context, request kmsg.Request, n int, held *reservation) error {
	total := min(int64(n), c.server.room.maxHeld())
	if held.bytes > 0 {
		return held.extend(ctx, total, c.server.opts.Limits.StallTimeout)
	}
	wanted := anyPermission
	if request.Key() == keyProduce {
		wanted = []access.Permission{permitProduce}
	}
	pool := c.server.room.outsiders
	if (&call{conn: c, session: c.auth.session}).hasWithinCluster(wanted...) {
		pool = c.server.room.main
	}
	counted, err := c.server.reserveFrame(ctx, pool, c.caller(c.auth.session), total)
	held.caller, held.pool, held.bytes = counted.caller, counted.pool, counted.bytes
	return err
}

// measureBody returns a body in the form that the codec expects, and the memory of its decoded form.
func measureBody(request kmsg.Request, body []byte) (exact []byte, memory int, err error) {
	shape := shapeOf(request.Key(), request.GetVersion())
	memory, err = checkBody(shape, body)
	if shorter, ok := unpadded(request, body); ok && errors.Is(err, errTrailingBytes) {
		if small, fits := checkBody(shape, shorter); fits == nil {
			return shorter, small, nil
		}
	}
	return body, memory, err
}

// decodeBody decodes a body that measureBody has checked.
func decodeBody(request kmsg.Request, body []byte) (err error) {
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
