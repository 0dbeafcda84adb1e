package kafka

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"freshet/test/rawhttp"
)

// httpRow has consumers receive and acknowledge messages over HTTP: messages produced
// over HTTP one at a time, and messages produced by Kafka clients in batches of 150.
func httpRow(name string, consumers, messages int) row {
	return row{name: name, variants: func(brokers []*broker) []variant {
		own := brokers[0]
		return []variant{
			{"produced by Kafka clients, batches of 150", own, func(t *trial) (outcome, error) {
				return t.consumeHTTP(consumers, messages, func(_ []*rawhttp.Connection) error {
					c, err := t.client(kgo.DefaultProduceTopic(t.topic))
					if err != nil {
						return err
					}
					for range messages / 150 {
						batch := make([]*kgo.Record, 150)
						for i := range batch {
							batch[i] = &kgo.Record{Value: []byte(message)}
						}
						if err := c.ProduceSync(t.ctx, batch...).FirstErr(); err != nil {
							return err
						}
					}
					return nil
				})
			}},
			{"produced over HTTP", own, func(t *trial) (outcome, error) {
				return t.consumeHTTP(consumers, messages, func(conns []*rawhttp.Connection) error {
					produce := rawhttp.Request(http.MethodPost, "/admin/rest/topics/v1/public/default/"+t.topic+
						"/message", t.k.token,
						"Accept: application/json\r\nContent-Type: application/octet-stream\r\n", message)
					return each(len(conns), func(i int) error {
						for range messages / len(conns) {
							if err := expect(conns[i], produce, http.StatusCreated); err != nil {
								return err
							}
						}
						return nil
					})
				})
			}},
		}
	}}
}

var message = strings.Repeat("x", 100)

// consumeHTTP measures consuming the messages that produce stored.
func (t *trial) consumeHTTP(consumers, messages int, produce func([]*rawhttp.Connection) error) (outcome, error) {
	conns := make([]*rawhttp.Connection, consumers)
	base := "/admin/rest/topics/v1/public/default/" + t.topic + "/s/message"
	err := t.prepare(func() (err error) {
		l := load{producers: 0, batch: 16 << 10}
		if _, err := l.connect(t); err != nil {
			return err
		}
		for i := range conns {
			if conns[i], err = rawhttp.Dial(strings.TrimPrefix(t.k.http, "http://")); err != nil {
				return err
			}
			t.closers = append(t.closers, func() { _ = conns[i].Close() })
		}
		subscribe := rawhttp.Request(http.MethodPut, "/admin/v2/persistent/public/default/"+t.topic+"/subscription/s",
			t.k.token, "", "")
		if err := expect(conns[0], subscribe, http.StatusNoContent); err != nil {
			return err
		}
		return produce(conns)
	})
	if err != nil {
		return outcome{}, err
	}
	consume := rawhttp.Request(http.MethodPost, base, t.k.token,
		"Accept: application/octet-stream\r\nContent-Type: application/json\r\n", `{"timeoutMillis":3000}`)
	times := make([]time.Duration, messages/consumers*consumers)
	err = each(consumers, func(n int) error {
		for i := range messages / consumers {
			began := time.Now()
			status, id, err := conns[n].Send(consume, "X-Msg-Message-Id")
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("consuming: status %d, %w", status, err)
			}
			settle := rawhttp.Request(http.MethodPut, base, t.k.token,
				"Accept: application/json\r\nContent-Type: application/json\r\n", id)
			if err := expect(conns[n], settle, http.StatusNoContent); err != nil {
				return err
			}
			times[n*(messages/consumers)+i] = time.Since(began)
		}
		return nil
	})
	got := outcome{records: len(times)}
	got.p50, got.p99 = percentiles(times)
	return got, err
}

func expect(c *rawhttp.Connection, request []byte, want int) error {
	status, _, err := c.Send(request, "")
	if err == nil && status != want {
		err = fmt.Errorf("got status %d, want %d", status, want)
	}
	return err
}
