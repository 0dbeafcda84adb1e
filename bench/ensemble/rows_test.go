package ensemble

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/test/rawhttp"
)

const (
	topics             = 12 // enough that every member owns some
	fewConnections     = 48 // connections
	manyConnections    = 192
	callsPerConnection = 100 // per connection
	soloCalls          = 600 // of a single connection
	batchSize          = 100
	batchCalls         = 10
	producers          = 6
	recordsPerProducer = 16000 // per producer
	size               = 1024
	consumeRow         = "consume and acknowledge"

	root    = "/admin/rest/topics/v1/public/default/"
	asBytes = "Accept: application/json\r\nContent-Type: application/octet-stream\r\n"
	asJSON  = "Accept: application/json\r\nContent-Type: application/json\r\n"
)

func topic(i int) string { return fmt.Sprintf("cost-%d", i%topics) }

// row is a kind of load; run makes all its calls to a target.
type row struct {
	name        string
	connections int // of the message API; 0 for Kafka
	messages    int
	run         func(ctx context.Context, s *target) error
}

// call makes the nth call of a connection to the message API.
type call func(s *target, connection, n int, topic string) error

// rows returns the measured loads. Those whose cost depends on the number of bytes are
// measured with events and with random messages, the others with events only.
func rows() []row {
	events, random := events(), random()
	return []row{
		httpRow("produce, one caller", 1, soloCalls, 1, produce(events)),
		httpRow("produce", fewConnections, callsPerConnection, 1, produce(events)),
		httpRow(consumeRow, fewConnections, callsPerConnection, 1, consume),
		httpRow(fmt.Sprintf("produce, %d callers", manyConnections), manyConnections, callsPerConnection/2, 1,
			produce(events)),
		batches(fmt.Sprintf("batches of %d", batchSize), events),
		batches(fmt.Sprintf("batches of %d, random", batchSize), random),
		{"Kafka producers", 0, producers * recordsPerProducer, kafkaProducers(events)},
		{"Kafka producers, random", 0, producers * recordsPerProducer, kafkaProducers(random)},
	}
}

func produce(k *kind) call {
	return func(s *target, connection, n int, topic string) error {
		return expect(s.connections[connection],
			rawhttp.Request(http.MethodPost, root+topic+"/message", s.token, asBytes, k.message(connection, n)),
			http.StatusCreated)
	}
}

func batches(name string, k *kind) row {
	return httpRow(name, fewConnections, batchCalls, batchSize, func(s *target, connection, n int, topic string) error {
		return expect(s.connections[connection],
			rawhttp.Request(http.MethodPost, root+topic+"/messages", s.token, asJSON, k.batch(connection, n)),
			http.StatusCreated)
	})
}

func consume(s *target, connection, _ int, topic string) error {
	c := s.connections[connection]
	path := root + topic + "/s/message"
	status, id, err := c.Send(rawhttp.Request(http.MethodPost, path, s.token, asJSON, `{"timeoutMillis":3000}`),
		"X-Msg-Message-Id")
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("consuming: status %d, %w", status, err)
	}
	return expect(c, rawhttp.Request(http.MethodPut, path, s.token, asJSON, id), http.StatusNoContent)
}

func expect(c *rawhttp.Connection, request []byte, want int) error {
	status, _, err := c.Send(request, "")
	if err == nil && status != want {
		err = fmt.Errorf("got status %d, want %d", status, want)
	}
	return err
}

// httpRow returns a row in which each of the connections makes n calls to its own topic. A
// single connection rotates through all topics, because other members own some of them.
func httpRow(name string, connections, n, messages int, do call) row {
	run := func(_ context.Context, s *target) error {
		return each(connections, func(i int) error {
			for k := range n {
				at := i
				if connections == 1 {
					at = k
				}
				if err := do(s, i, k, topic(at)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return row{name, connections, connections * n * messages, run}
}

// kafkaProducers has idempotent Kafka producers write to all topics, in batches of the
// library's default size.
func kafkaProducers(of *kind) func(ctx context.Context, s *target) error {
	return func(ctx context.Context, s *target) error {
		return each(producers, func(i int) error { return produceKafka(ctx, s, of, i) })
	}
}

// produceKafka runs one of the producers.
func produceKafka(ctx context.Context, s *target, of *kind, producer int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka...),
		kgo.SASL(plain.Auth{User: "bench", Pass: s.token}.AsMechanism()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	failed := make(chan error, 1)
	for k := range recordsPerProducer {
		client.Produce(ctx, &kgo.Record{Topic: topic(k), Value: of.record(producer, k)},
			func(_ *kgo.Record, err error) {
				if err != nil {
					select {
					case failed <- err:
					default: // the first error is enough
					}
				}
			})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return fmt.Errorf("producing: %w", err)
	default:
		return nil
	}
}

// each runs do n times concurrently and joins the errors.
func each(n int, do func(i int) error) error {
	problems := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { problems[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(problems...)
}
