package messageapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"freshet/internal/base/names"
	"freshet/internal/base/web"
	"freshet/internal/broker/messaging"
	"freshet/internal/surfaces/brokerhttp"
)

// consume is POST …/{subscription}/message. It responds as soon as there is a message.
// While it waits, it needs no goroutine besides the connection's.
func (c *call) consume() error {
	body, err := c.Body(maxSmallBody)
	if err != nil {
		return err
	}
	opts := messaging.ReceiveOptions{Wait: defaultTimeout, Max: 1}
	if len(body) > 0 {
		if opts, err = parseReceive(body); err != nil {
			return err
		}
		opts.Max = 1
	}
	received, err := c.Cluster.Consumer.Receive(c.WorkContext(), c.Topic, c.Subscription, opts)
	if err != nil {
		return err
	}
	if len(received) == 0 {
		return c.noMessage(&opts)
	}
	return c.deliver(received, func() error {
		m := &received[0]
		h := c.W.Header()
		writeHeaders(h, m)
		h["Content-Type"] = valueBinary
		c.Started = true
		c.W.WriteHeader(http.StatusOK)
		_, err := c.W.Write(m.Payload)
		return err
	})
}

// noMessage responds with 204 if there is no message. If the call has waited, it is
// authorized again first, as before a message: a caller that has lost the permission
// gets the denial in both cases.
func (c *call) noMessage(opts *messaging.ReceiveOptions) error {
	if opts.Wait > 0 {
		if err := c.reauthorize(); err != nil {
			return err
		}
	}
	c.NoContent()
	return nil
}

// deliver writes a response with leased messages. If it cannot be sent or the client
// has disconnected, the leases end immediately, so that other consumers get the
// messages.
func (c *call) deliver(received []messaging.Received, write func() error) error {
	defer c.setWriteDeadline(received)()
	err := c.R.Context().Err()
	if err == nil {
		err = c.reauthorize()
	}
	if err == nil {
		if err = write(); err == nil {
			err = flush(c.W)
		}
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, c.Cluster.Consumer.ReleaseLeases(c.Topic, c.Subscription, received))
}

// smallResponse is a response size that the connection's buffers accept even if the client
// does not read, so that such a response needs no write deadline.
const smallResponse = 64 << 10

// setWriteDeadline sets a write deadline for a large response, because a client that does
// not read could hold the memory of many messages. The returned function removes the
// deadline.
func (c *call) setWriteDeadline(received []messaging.Received) (reset func()) {
	size := 0
	for i := range received {
		size += len(received[i].Payload) + brokerhttp.MetadataBytes(&received[i])
	}
	if size <= smallResponse {
		return func() {}
	}
	control := http.NewResponseController(c.W)
	// Writers without deadlines use the server's own timeouts.
	_ = control.SetWriteDeadline(time.Now().Add(c.api.opts.WriteTimeout))
	return func() { _ = control.SetWriteDeadline(time.Time{}) }
}

// consumeBatch is POST …/{subscription}/messages, an extension.
func (c *call) consumeBatch() error {
	var body struct {
		receiveBody
		Encoding string `json:"encoding"`
	}
	if _, err := c.Decode(&body, maxSmallBody); err != nil {
		return err
	}
	requested, err := parseEncoding(body.Encoding)
	if err != nil {
		return err
	}
	opts, err := body.options()
	if err != nil {
		return err
	}
	if body.MaxMessages == nil {
		opts.Max = defaultBatch
	}
	received, err := c.Cluster.Consumer.Receive(c.WorkContext(), c.Topic, c.Subscription, opts)
	if err != nil {
		return err
	}
	if len(received) == 0 {
		return c.noMessage(&opts)
	}
	return c.deliver(received, func() error {
		out := struct {
			Messages []receivedMessage `json:"messages"`
		}{make([]receivedMessage, len(received))}
		for i := range received {
			out.Messages[i] = render(&received[i], requested)
		}
		b, err := web.MarshalJSON(out)
		if err != nil {
			return err
		}
		h := c.W.Header()
		h["Content-Type"] = valueJSON
		h["Content-Length"] = []string{strconv.Itoa(len(b))}
		c.Started = true
		c.W.WriteHeader(http.StatusOK)
		_, err = c.W.Write(b)
		return err
	})
}

const defaultBatch = 100

// ack is PUT …/{subscription}/message.
func (c *call) ack() error {
	body, err := c.Body(maxSmallBody)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return brokerhttp.BadBody("a message id is missing")
	}
	id, err := brokerhttp.ParseID(body)
	if err != nil {
		return err
	}
	return c.settle(messaging.Settlement{ID: id, Action: messaging.Ack})
}

func (c *call) settle(settlements ...messaging.Settlement) error {
	if err := c.Cluster.Consumer.Settle(c.R.Context(), c.Topic, c.Subscription, settlements...); err != nil {
		return err
	}
	c.NoContent()
	return nil
}

// settleAll parses ids and applies one action to all of them.
func (c *call) settleAll(action messaging.SettleAction, delay func(*settleBody) (time.Duration, error)) error {
	limit := c.Cluster.Limits.MaxBatch
	body, err := c.Body(int64(limit)*idBytes + maxSmallBody)
	if err != nil {
		return err
	}
	ids, options, err := parseIDs(body, limit)
	if err != nil {
		return err
	}
	d, err := delay(&options)
	if err != nil {
		return err
	}
	settlements := make([]messaging.Settlement, len(ids))
	for i, id := range ids {
		settlements[i] = messaging.Settlement{ID: id, Action: action, Delay: d}
	}
	return c.settle(settlements...)
}

func noDelay(*settleBody) (time.Duration, error) { return 0, nil }

// ackBatch is PUT …/{subscription}/messages, an extension.
func (c *call) ackBatch() error { return c.settleAll(messaging.Ack, noDelay) }

// ackCumulative is PUT …/{subscription}/message/cumulative, an extension. It
// acknowledges a message and all earlier messages of its partition.
func (c *call) ackCumulative() error { return c.settleAll(messaging.AckTo, noDelay) }

// nack is POST …/{subscription}/message/nack, an extension.
func (c *call) nack() error {
	return c.settleAll(messaging.Nack, func(b *settleBody) (time.Duration, error) {
		if b.DelayMillis == nil {
			return 0, nil
		}
		return millis("delayMillis", *b.DelayMillis)
	})
}

// extend is POST …/{subscription}/message/extend, an extension.
func (c *call) extend() error {
	return c.settleAll(messaging.Extend, func(b *settleBody) (time.Duration, error) {
		if b.AckTimeoutMillis == nil {
			return 0, brokerhttp.BadBody("ackTimeoutMillis is missing")
		}
		return millis("ackTimeoutMillis", *b.AckTimeoutMillis)
	})
}

// queryID parses a message id in the query.
func (c *call) queryID(name string) (*names.MessageID, error) {
	text := c.R.URL.Query().Get(name)
	if text == "" {
		return nil, nil
	}
	id, err := brokerhttp.ParseID([]byte(text))
	if err != nil {
		return nil, err
	}
	return &id, nil
}

// queryNumber parses a number in the query or, without one, in a header.
func (c *call) queryNumber(name, header string) (int64, bool, error) {
	text := c.R.URL.Query().Get(name)
	if text == "" && header != "" {
		text = c.R.Header.Get(header)
	}
	if text == "" {
		return 0, false, nil
	}
	n, err := parseMillis(text)
	if err != nil {
		return 0, false, brokerhttp.BadQuery("%s must be an integer of at least 0", name)
	}
	return n, true, nil
}
