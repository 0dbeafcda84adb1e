package messageapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// eventBeat is the interval of heartbeats on an idle stream of server-sent events. The
// heartbeat is a comment; it keeps proxies from closing the connection.
const eventBeat = 15 * time.Second

// events writes server-sent events to a client.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	buf     []byte
}

func (c *call) startEvents() (*events, error) {
	h := c.W.Header()
	h["Content-Type"] = []string{contentEvents}
	h["Cache-Control"] = []string{"no-store"}
	h["X-Accel-Buffering"] = []string{"no"} // keeps nginx from buffering events
	c.Began = true
	c.W.WriteHeader(http.StatusOK)
	e := &events{w: c.W, control: http.NewResponseController(c.W), timeout: c.api.opts.WriteTimeout}
	e.buf = append(e.buf, "retry: 1000\n\n"...)
	return e, e.send()
}

// message adds an event with one message to the buffer.
func (e *events) message(m *messaging.Received, as rendering) error {
	b, err := web.MarshalJSON(as.render(m))
	if err != nil {
		return err
	}
	e.buf = append(e.buf, "event: message\nid: "...)
	e.buf = m.ID.AppendBase64(e.buf)
	e.buf = append(e.buf, "\ndata: "...)
	e.buf = append(e.buf, b...)
	e.buf = append(e.buf, "\n\n"...)
	return nil
}

// send writes and flushes the buffer. A client that does not read is disconnected.
func (e *events) send() error {
	// Writers without deadlines use the server's own timeouts.
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
	_, err := e.w.Write(e.buf)
	e.buf = e.buf[:0]
	if err != nil {
		return err
	}
	return flush(e.w)
}

// release removes the write deadline of the last event.
func (e *events) release() { _ = e.control.SetWriteDeadline(time.Time{}) }

func (e *events) beat() error {
	e.buf = append(e.buf, ":\n\n"...)
	return e.send()
}

// source returns the messages of a stream.
type source interface {
	Next(ctx context.Context, wait time.Duration) ([]messaging.Received, error)
}

// pump sends events until the client disconnects or the broker drains.
func (c *call) pump(from source, as rendering) error {
	out, err := c.startEvents()
	if err != nil {
		return err
	}
	defer out.release()
	for {
		if err := c.pace(); err != nil {
			return nil // the client has disconnected
		}
		received, err := from.Next(c.R.Context(), eventBeat)
		if err == nil {
			err = c.stillAllowed()
		}
		switch {
		case errors.Is(err, messaging.ErrClosing), c.R.Context().Err() != nil:
			return nil // a clean end: the client reconnects, to this or to another server
		case err != nil:
			status := brokerhttp.StatusOf(err, brokerhttp.MessageCalls)
			out.buf = strconv.AppendInt(append(out.buf, "event: error\ndata: {\"status\":"...), int64(status), 10)
			out.buf = append(out.buf, ",\"reason\":"...)
			out.buf = append(out.buf, brokerhttp.Quote(brokerhttp.PublicReason(err, status))...)
			out.buf = append(out.buf, "}\n\n"...)
			return errors.Join(err, out.send())
		case len(received) == 0:
			err = out.beat()
		default:
			for i := range received {
				if err = out.message(&received[i], as); err != nil {
					return err
				}
			}
			err = out.send()
		}
		if err != nil {
			return err
		}
	}
}

// pace waits while the organization exceeds its quota of bytes per second.
func (c *call) pace() error {
	if c.Principal.System {
		return nil
	}
	pause := c.Cluster.Quota.Pause()
	if pause == 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.R.Context().Done():
		return c.R.Context().Err()
	}
}

// stream is GET …/{subscription}/messages, an extension. It sends messages as events,
// with at most credits unacknowledged messages. The client acknowledges them with PUT,
// as after a consume. When the connection ends, the leases of the others end immediately.
func (c *call) stream() error {
	credits, given, err := c.numberOfQuery("credits", headerMaxUnacked)
	if err != nil {
		return err
	}
	if given && credits == 0 {
		return brokerhttp.BadQuery("credits must be at least 1")
	}
	lease, leased, err := c.numberOfQuery("ackTimeoutMillis", "")
	if err != nil {
		return err
	}
	wanted, err := parseEncoding(c.R.URL.Query().Get("encoding"))
	if err != nil {
		return err
	}
	opts := messaging.StreamOptions{Credits: int(min(credits, math.MaxInt32))}
	if leased {
		if opts.Lease, err = millis("ackTimeoutMillis", lease); err != nil {
			return err
		}
	}
	s, err := c.Broker().Stream(c.R.Context(), c.Topic, c.Subscription, opts)
	if err != nil {
		return err
	}
	return errors.Join(c.pump(s, rendering{encoding: wanted}), s.Close())
}

// tail is GET …/{topic}/tail, an extension. It sends a topic's messages as events and
// does not affect any subscription.
func (c *call) tail() error {
	query := c.R.URL.Query()
	wanted, err := parseEncoding(query.Get("encoding"))
	if err != nil {
		return err
	}
	var from messaging.TailFrom
	switch query.Get("from") {
	case "", "latest":
	case "earliest":
		from.Earliest = true
	default:
		return brokerhttp.BadQuery("from must be earliest or latest")
	}
	since, ok, err := c.numberOfQuery("since", "")
	if err != nil {
		return err
	}
	if ok {
		from.Since = time.UnixMilli(since)
	}
	if from.After, err = c.idOfQuery("after"); err != nil {
		return err
	}
	if last := c.R.Header.Get("Last-Event-ID"); last != "" && from.After == nil {
		// A page whose connection was lost continues after its last event.
		id, err := brokerhttp.ParseID([]byte(last))
		if err != nil {
			return err
		}
		from.After = &id
	}
	as := rendering{encoding: wanted}
	if as.limit, as.limited, err = c.numberOfQuery("payloadLimit", ""); err != nil {
		return err
	}
	t, err := c.Broker().Tail(c.R.Context(), c.Topic, from)
	if err != nil {
		return err
	}
	return c.pump(t, as)
}
