package natssim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Link is the connection of one member to the servers. It implements nats.InProcessConnProvider.
type Link struct {
	s    *Servers
	cut  bool // protected by Servers.mu
	name string
}

// Link returns a connection for a member.
func (s *Servers) Link(name string) *Link { return &Link{s: s, name: name} }

var errCut = errors.New("simulated servers are unreachable")

// maxPayload is the size that the servers announce, as that of an ensemble.
const maxPayload = 16 << 20

// InProcessConn connects to the servers.
func (l *Link) InProcessConn() (net.Conn, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.cut || l.s.closed {
		return nil, errCut
	}
	ours, theirs := net.Pipe()
	c := &conn{
		s: l.s, link: l, pipe: ours, subs: map[string]string{},
		wakeup: make(chan struct{}, 1), received: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	l.s.conns[c] = struct{}{}
	c.write([]byte(fmt.Sprintf("INFO {\"server_id\":\"sim\",\"server_name\":\"sim\",\"version\":\"2.15.2\","+
		"\"proto\":1,\"headers\":true,\"jetstream\":true,\"max_payload\":%d}\r\n", maxPayload)), 0)
	l.s.wg.Go(c.writeLoop)
	l.s.wg.Go(c.readLoop)
	l.s.wg.Go(c.routeLoop)
	return theirs, nil
}

// Cut disconnects the member until Restore.
func (l *Link) Cut() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.cut = true
	for c := range l.s.conns {
		if c.link == l {
			c.close()
		}
	}
}

// Restore ends Cut.
func (l *Link) Restore() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.cut = false
}

// Reachable reports whether the member is connected.
func (l *Link) Reachable() bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return !l.cut && !l.s.closed
}

// message is a message on its way or in a stream.
type message struct {
	subject string
	reply   string
	header  []byte // with the line NATS/1.0 and the final empty line; nil without headers
	data    []byte
	seq     uint64
	at      time.Time
}

// outgoing is what a connection has to send not before a time.
type outgoing struct {
	data []byte
	at   time.Time
}

// conn is one connection of a member.
type conn struct {
	s        *Servers
	link     *Link
	pipe     net.Conn
	subs     map[string]string // pattern by id; protected by Servers.mu
	lost     bool              // messages on their way are lost; of routeLoop
	once     sync.Once
	wakeup   chan struct{}
	received chan struct{}
	ended    chan struct{}

	mu       sync.Mutex // a leaf; protects the fields below
	queue    []outgoing
	incoming []*message // with the time of arrival
}

func (c *conn) close() {
	c.once.Do(func() {
		close(c.ended)
		_ = c.pipe.Close() // a pipe has no error
	})
}

// write queues data for the client. The order stays, so a delay also delays what follows.
func (c *conn) write(data []byte, delay time.Duration) {
	c.mu.Lock()
	c.queue = append(c.queue, outgoing{data, time.Now().Add(delay)})
	c.mu.Unlock()
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

func (c *conn) writeLoop() {
	for {
		c.mu.Lock()
		queue := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, o := range queue {
			time.Sleep(time.Until(o.at))
			if _, err := c.pipe.Write(o.data); err != nil {
				return
			}
		}
		if len(queue) > 0 {
			continue
		}
		select {
		case <-c.wakeup:
		case <-c.ended:
			return
		}
	}
}

// sendLocked sends a message to a subscription of the client.
func (c *conn) sendLocked(sid string, m *message) {
	var b bytes.Buffer
	head := m.subject + " " + sid
	if m.reply != "" {
		head += " " + m.reply
	}
	if m.header == nil {
		fmt.Fprintf(&b, "MSG %s %d\r\n", head, len(m.data))
	} else {
		fmt.Fprintf(&b, "HMSG %s %d %d\r\n", head, len(m.header), len(m.header)+len(m.data))
	}
	b.Write(m.header)
	b.Write(m.data)
	b.WriteString("\r\n")
	c.write(b.Bytes(), c.s.latencyLocked())
}

func (c *conn) readLoop() {
	defer func() {
		c.close()
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		delete(c.s.conns, c)
	}()
	in := bufio.NewReader(c.pipe)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if err := c.command(strings.TrimRight(line, "\r\n"), in); err != nil {
			return
		}
	}
}

// command executes a line of the protocol.
func (c *conn) command(line string, in *bufio.Reader) error {
	verb, rest, _ := strings.Cut(line, " ")
	args := strings.Fields(rest)
	switch strings.ToUpper(verb) {
	case "PING":
		c.write([]byte("PONG\r\n"), 0)
	case "SUB":
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.subs[args[len(args)-1]] = args[0]
	case "UNSUB":
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		if len(args) == 1 { // with a number of messages: the client itself ignores more of them
			delete(c.subs, args[0])
		}
	case "PUB", "HPUB":
		return c.publish(strings.EqualFold(verb, "HPUB"), args, in)
	}
	return nil
}

// publish reads a message of the client and routes it.
func (c *conn) publish(hasHeader bool, args []string, in *bufio.Reader) error {
	total, err := strconv.Atoi(args[len(args)-1])
	if err != nil {
		return err
	}
	header, sizes := 0, 1
	if hasHeader {
		sizes = 2
		if header, err = strconv.Atoi(args[len(args)-2]); err != nil {
			return err
		}
	}
	m := &message{subject: args[0]}
	if len(args) == 2+sizes {
		m.reply = args[1]
	}
	content := make([]byte, total+2)
	if _, err := io.ReadFull(in, content); err != nil {
		return err
	}
	if hasHeader {
		m.header = content[:header]
	}
	m.data = content[header:total]
	// The pipe is always read at once: the client holds a lock while it writes, and simulated time stands
	// still while a goroutine waits for a lock.
	c.s.mu.Lock()
	m.at = time.Now().Add(c.s.latencyLocked())
	c.s.mu.Unlock()
	c.mu.Lock()
	c.incoming = append(c.incoming, m)
	c.mu.Unlock()
	select {
	case c.received <- struct{}{}:
	default:
	}
	return nil
}

// routeLoop routes the messages of the client when they arrive, in order.
func (c *conn) routeLoop() {
	for {
		c.mu.Lock()
		list := c.incoming
		c.incoming = nil
		c.mu.Unlock()
		for _, m := range list {
			time.Sleep(time.Until(m.at))
			c.s.mu.Lock()
			select {
			case <-c.ended: // the rest of what was on its way may be lost with the connection
				c.lost = c.lost || c.s.random.IntN(4) == 0
			default:
			}
			if !c.s.closed && !c.lost {
				c.s.routeLocked(m)
			}
			c.s.mu.Unlock()
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-c.received:
		case <-c.ended:
			return
		}
	}
}
