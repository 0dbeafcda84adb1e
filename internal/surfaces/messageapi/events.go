package messageapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"freshet/internal/base/retry"
	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// heartbeatInterval is the interval of heartbeats on an idle stream of server-sent events. The
// heartbeat is a comment; it keeps proxies from closing the connection.
const heartbeatInterval = 15 * time.Second

// maxNewest is the largest number of stored messages with which a tail begins.
const maxNewest = 1000

// eventWriter writes server-sent events to a client.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	buf     []byte
}

func (c *call) startEvents() (*eventWriter, error) {
	h := c.W.Header()
	h["Content-Type"] = []string{contentEvents}
	h["Cache-Control"] = []string{"no-store"}
	h["X-Accel-Buffering"] = []string{"no"} // keeps nginx from buffering events
	c.Started = true
	c.W.WriteHeader(http.StatusOK)
	e := &eventWriter{w: c.W, control: http.NewResponseController(c.W), timeout: c.api.opts.WriteTimeout}
	e.buf = append(e.buf, "retry: 1000\n\n"...)
	return e, e.send()
}

// message adds an event with one message to the buffer.
func (e *eventWriter) message(m *messaging.Received, as rendering) error {
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
func (e *eventWriter) send() error {
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
func (e *eventWriter) release() { _ = e.control.SetWriteDeadline(time.Time{}) }

// fail sends the event of an error, which ends the stream, and returns the error.
func (e *eventWriter) fail(err error) error {
	status := brokerhttp.MessageCalls.Status(err)
	e.buf = strconv.AppendInt(append(e.buf, "event: error\ndata: {\"status\":"...), int64(status), 10)
	e.buf = append(e.buf, ",\"reason\":"...)
	e.buf = append(e.buf, brokerhttp.Quote(brokerhttp.PublicReason(err, status))...)
	e.buf = append(e.buf, "}\n\n"...)
	return errors.Join(err, e.send())
}

func (e *eventWriter) heartbeat() error {
	e.buf = append(e.buf, ":\n\n"...)
	return e.send()
}

// source returns the messages of a stream.
type source interface {
	Next(ctx context.Context, wait time.Duration) ([]messaging.Received, error)
}

// sendEvents sends events until the client disconnects or the broker drains.
func (c *call) sendEvents(from source, as rendering) error {
	out, err := c.startEvents()
	if err != nil {
		return err
	}
	defer out.release()
	ctx := c.WorkContext()
	filtered, _ := from.(*messaging.FilteredTail)
	progress := tailProgress{tail: filtered, sent: time.Now()}
	for {
		if err := c.waitForQuota(); err != nil {
			return nil // the client has disconnected
		}
		received, err := from.Next(ctx, progress.wait())
		if err == nil {
			err = c.reauthorize()
		}
		switch {
		case errors.Is(err, messaging.ErrClosing), c.R.Context().Err() != nil:
			return nil // a clean end: the client reconnects, to this or to another server
		case err != nil:
			return out.fail(err)
		case len(received) == 0 && !progress.pending():
			if err := out.heartbeat(); err != nil {
				return err
			}
			continue
		}
		for i := range received {
			if err := out.message(&received[i], as); err != nil {
				return err
			}
		}
		if err := progress.report(out); err != nil {
			return err
		}
		if len(out.buf) == 0 {
			continue
		}
		if err := out.send(); err != nil {
			return err
		}
	}
}

// waitForQuota waits while the organization exceeds its quota of bytes per second.
func (c *call) waitForQuota() error {
	if c.Principal.System {
		return nil
	}
	pause := c.Cluster.Quota.Pause()
	if pause == 0 {
		return nil
	}
	if retry.Sleep(c.R.Context(), pause) != nil {
		return c.R.Context().Err()
	}
	return nil
}

// stream is GET …/{subscription}/messages, an extension. It sends messages as events,
// with at most credits unacknowledged messages. The client acknowledges them with PUT,
// as after a consume. When the connection ends, the leases of the others end immediately.
func (c *call) stream() error {
	credits, hasCredits, err := c.queryNumber("credits", headerMaxUnacked)
	if err != nil {
		return err
	}
	if hasCredits && credits == 0 {
		return brokerhttp.BadQuery("credits must be at least 1")
	}
	lease, hasLease, err := c.queryNumber("ackTimeoutMillis", "")
	if err != nil {
		return err
	}
	requested, err := parseEncoding(c.R.URL.Query().Get("encoding"))
	if err != nil {
		return err
	}
	opts := messaging.PushConsumerOptions{Credits: int(min(credits, math.MaxInt32))}
	if hasLease {
		if opts.Lease, err = millis("ackTimeoutMillis", lease); err != nil {
			return err
		}
	}
	s, err := c.Cluster.Consumer.OpenPushConsumer(c.R.Context(), c.Topic, c.Subscription, opts)
	if err != nil {
		return err
	}
	return errors.Join(c.sendEvents(s, rendering{encoding: requested}), s.Close())
}

// tail is GET …/{topic}/tail, an extension. It sends a topic's messages as events and
// does not affect any subscription.
func (c *call) tail() error {
	query := c.R.URL.Query()
	requested, err := parseEncoding(query.Get("encoding"))
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
	since, ok, err := c.queryNumber("since", "")
	if err != nil {
		return err
	}
	if ok {
		from.Since = time.UnixMilli(since)
	}
	last, ok, err := c.queryNumber("last", "")
	if err != nil {
		return err
	}
	if ok {
		if last < 1 || last > maxNewest {
			return brokerhttp.BadQuery("last must be a number of messages from 1 to 1000")
		}
		if from.Earliest || !from.Since.IsZero() {
			return brokerhttp.BadQuery("last cannot be combined with from=earliest or since")
		}
		from.Newest = int(last)
	}
	if from.After, err = c.queryID("after"); err != nil {
		return err
	}
	if lastEvent := c.R.Header.Get("Last-Event-ID"); lastEvent != "" && from.After == nil {
		// A page whose connection was lost continues after its last event.
		id, err := brokerhttp.ParseID([]byte(lastEvent))
		if err != nil {
			return err
		}
		from.After = &id
	}
	if from.After != nil {
		from.Newest = 0
	}
	as := rendering{encoding: requested}
	if as.limit, as.limited, err = c.queryNumber("payloadLimit", ""); err != nil {
		return err
	}
	if text := query.Get("filter"); text != "" {
		return c.filteredTail(text, from, as)
	}
	t, err := c.Cluster.Consumer.Tail(c.WorkContext(), c.Topic, from)
	if err != nil {
		return err
	}
	return c.sendEvents(t, as)
}
