package segmentio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

func writer(t *testing.T, c *kafka.Client) *kafka.Writer {
	t.Helper()
	w := &kafka.Writer{
		Addr: c.Addr, Transport: c.Transport, RequiredAcks: kafka.RequireAll,
		BatchTimeout: 5 * time.Millisecond, Balancer: &kafka.Murmur2Balancer{},
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestWriterReader sends records of every kind with every codec and reads them with a
// consumer group, which continues at its committed offset.
func TestWriterReader(t *testing.T) {
	t.Parallel()
	for _, codec := range []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd} {
		name := codec.String()
		if codec == 0 {
			name = "none"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ctx := client(t), short(t)
			topic := topic(t, c, "codec-"+name, 1)
			w := writer(t, c)
			w.Topic, w.Compression = topic, codec
			var sent []kafka.Message
			for i := range 40 {
				m := kafka.Message{
					Key: fmt.Append(nil, "key-", i%7), Value: []byte(strings.Repeat("value ", i+1)),
					Time:    time.UnixMilli(1700000000000 + int64(i)),
					Headers: []kafka.Header{{Key: "h", Value: []byte{0xff, byte(i)}}},
				}
				switch i {
				case 1:
					m.Key = nil
				case 2:
					m.Value = nil
				}
				sent = append(sent, m)
			}
			do(t, w.WriteMessages(ctx, sent...))
			read := func(n int) (last kafka.Message) {
				r := kafka.NewReader(kafka.ReaderConfig{
					Brokers: []string{address(t)}, Dialer: dialer(), GroupID: topic,
					Topic: topic, StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
				})
				defer func() { do(t, r.Close()) }()
				for range n {
					got, err := r.FetchMessage(ctx)
					do(t, err)
					want := sent[got.Offset]
					if string(got.Key) != string(want.Key) || (got.Key == nil) != (want.Key == nil) ||
						string(got.Value) != string(want.Value) || (got.Value == nil) != (want.Value == nil) ||
						!got.Time.Equal(want.Time) || len(got.Headers) != 1 ||
						string(got.Headers[0].Value) != string(want.Headers[0].Value) {
						t.Errorf("record %d: got %+v, want %+v", got.Offset, got, want)
					}
					do(t, r.CommitMessages(ctx, got))
					last = got
				}
				return last
			}
			if first, second := read(25), read(15); first.Offset != 24 || second.Offset != 39 {
				t.Errorf("read up to %d, then up to %d; want 24 and 39", first.Offset, second.Offset)
			}
		})
	}
}

// TestGroupShares checks that two readers of a consumer group together get all messages of
// four partitions.
func TestGroupShares(t *testing.T) {
	t.Parallel()
	c, ctx := client(t), short(t)
	topic := topic(t, c, "shared", 4)
	got := make(chan kafka.Message, 100)
	for range 2 {
		r := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{address(t)}, Dialer: dialer(), GroupID: topic, GroupTopics: []string{topic},
			StartOffset: kafka.FirstOffset, MaxWait: 100 * time.Millisecond,
			HeartbeatInterval: 300 * time.Millisecond,
			GroupBalancers:    []kafka.GroupBalancer{kafka.RoundRobinGroupBalancer{}, kafka.RangeGroupBalancer{}},
		})
		done := make(chan struct{})
		reading, cancel := context.WithCancel(ctx)
		go func() {
			defer close(done)
			for {
				m, err := r.ReadMessage(reading)
				if err != nil {
					return
				}
				got <- m
			}
		}()
		defer func() {
			cancel()
			<-done
			do(t, r.Close())
		}()
	}
	members := 0
	for members < 2 && ctx.Err() == nil {
		described, err := c.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{topic}})
		do(t, err)
		members = 0
		for _, m := range described.Groups[0].Members {
			for _, a := range m.MemberAssignments.Topics {
				if len(a.Partitions) == 2 {
					members++
				}
			}
		}
	}
	w := writer(t, c)
	w.Topic = topic
	var sent []kafka.Message
	for i := range 40 {
		sent = append(sent, kafka.Message{Key: fmt.Append(nil, i), Value: []byte("x")})
	}
	do(t, w.WriteMessages(ctx, sent...))
	partitions := map[int]int{}
	for range 40 {
		select {
		case m := <-got:
			partitions[m.Partition]++
		case <-ctx.Done():
			t.Fatalf("got %v, want 40 messages", partitions)
		}
	}
	if len(partitions) != 4 {
		t.Errorf("got messages of partitions %v, want of all four", partitions)
	}
}

// TestConn connects to a partition's leader directly: offsets, seeking, lookup by time, and
// a read that waits.
func TestConn(t *testing.T) {
	t.Parallel()
	c, ctx := client(t), short(t)
	topic := topic(t, c, "conn", 1)
	conn, err := dialer().DialLeader(ctx, "tcp", address(t), topic, 0)
	do(t, err)
	defer func() { do(t, conn.Close()) }()
	if first, last, err := conn.ReadOffsets(); err != nil || first != 0 || last != 0 {
		t.Errorf("offsets of an empty partition: got %d and %d, %v; want 0", first, last, err)
	}
	for i := range 10 {
		_, err := conn.WriteMessages(kafka.Message{Value: fmt.Append(nil, i), Time: time.UnixMilli(int64(1000 + i*10))})
		do(t, err)
	}
	if first, last, err := conn.ReadOffsets(); err != nil || first != 0 || last != 10 {
		t.Errorf("offsets: got %d and %d, %v; want 0 and 10", first, last, err)
	}
	if at, err := conn.ReadOffset(time.UnixMilli(1045)); err != nil || at != 5 {
		t.Errorf("offset at a time: got %d, %v; want 5", at, err)
	}
	_, err = conn.Seek(7, kafka.SeekAbsolute)
	do(t, err)
	if m, err := conn.ReadMessage(1 << 20); err != nil || string(m.Value) != "7" {
		t.Errorf("read at 7: got %q, %v", m.Value, err)
	}
	_, err = conn.Seek(0, kafka.SeekEnd)
	do(t, err)
	batch := conn.ReadBatchWith(kafka.ReadBatchConfig{MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 100 * time.Millisecond})
	if _, err := batch.ReadMessage(); !errors.Is(err, io.EOF) && !errors.Is(err, kafka.RequestTimedOut) {
		t.Errorf("read at the end: got %v, want no message", err)
	}
	_ = batch.Close() // returns the same error
}

type bearer struct{ token string }

// Name implements sasl.Mechanism.
func (bearer) Name() string { return "OAUTHBEARER" }

// Start implements sasl.Mechanism.
func (b bearer) Start(context.Context) (sasl.StateMachine, []byte, error) {
	return b, []byte("n,,\x01auth=Bearer " + b.token + "\x01\x01"), nil
}

// Next implements sasl.StateMachine.
func (bearer) Next(context.Context, []byte) (bool, []byte, error) { return true, nil, nil }

func TestAuthentication(t *testing.T) {
	t.Parallel()
	address(t)
	connect := func(at string, d *kafka.Dialer) error {
		conn, err := d.DialContext(short(t), "tcp", at)
		if err != nil {
			return err
		}
		_, err = conn.Brokers()
		return errors.Join(err, conn.Close())
	}
	secured := func(name string) *kafka.Dialer {
		d := dialer()
		d.TLS = authority(t)
		d.TLS.ServerName = name
		return d
	}
	plain, tls := address(t), os.Getenv("FRESHET_STREAM_TLS")
	for what, err := range map[string]error{
		"PLAIN":             connect(plain, dialer()),
		"OAUTHBEARER":       connect(plain, &kafka.Dialer{SASLMechanism: bearer{os.Getenv("FRESHET_TOKEN")}}),
		"TLS":               connect(tls, secured("127.0.0.1")),
		"TLS, cluster name": connect(tls, secured("default.default.freshet.localhost")),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := connect(plain, &kafka.Dialer{SASLMechanism: bearer{"wrong"}}); !errors.Is(err,
		kafka.SASLAuthenticationFailed) {
		t.Errorf("a wrong token: got %v, want %v", err, kafka.SASLAuthenticationFailed)
	}
	if err := connect(plain, &kafka.Dialer{}); err == nil {
		t.Error("without credentials: connected, want an error")
	}
}
