package confluent_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

// TestKafkaMessages sends records of every kind with every codec through an
// idempotent producer and reads them back.
func TestKafkaMessages(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			topic := newTopic(t, "codec-"+codec, 1, nil)
			var sent []*kafka.Message
			for i := range 50 {
				m := to(topic, 0, strings.Repeat("value ", i+1))
				m.Key, m.Timestamp = fmt.Append(nil, "key-", i%7), time.UnixMilli(1700000000000+int64(i))
				m.Headers = []kafka.Header{{Key: "h", Value: []byte{0xff, byte(i)}}, {Key: "h", Value: nil}}
				switch i {
				case 1:
					m.Key = nil
				case 2:
					m.Value = nil
				}
				sent = append(sent, m)
			}
			send(t, kafkaConfig(t,
				kafka.ConfigMap{"enable.idempotence": true, "compression.type": codec, "linger.ms": 50}), sent...)
			c := newConsumer(t, topic, nil)
			do(t, c.SubscribeTopics([]string{topic}, nil))
			for i, want := range sent {
				got := receive(t, c)
				if int(got.TopicPartition.Offset) != i || string(got.Key) != string(want.Key) ||
					(got.Key == nil) != (want.Key == nil) || string(got.Value) != string(want.Value) ||
					(got.Value == nil) != (want.Value == nil) ||
					!got.Timestamp.Equal(want.Timestamp) || len(got.Headers) != 2 ||
					!slices.Equal(got.Headers[0].Value, want.Headers[0].Value) {
					t.Fatalf("record %d: got %+v, want %+v", i, got, want)
				}
			}
			if low, high, err := c.QueryWatermarkOffsets(topic, 0, 10_000); err != nil || low != 0 || high != 50 {
				t.Errorf("watermarks: got %d and %d, %v; want 0 and 50", low, high, err)
			}
			found, err := c.OffsetsForTimes([]kafka.TopicPartition{{Topic: &topic, Offset: 1700000000020}}, 10_000)
			if err != nil || found[0].Offset != 20 {
				t.Errorf("offset at a time: got %v, %v; want 20", found, err)
			}
		})
	}
}

// TestKafkaAppendTime checks that records of a topic with LogAppendTime have the time of
// the append and not the producer's time.
func TestKafkaAppendTime(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "append-time", 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	began := time.Now().Add(-time.Minute)
	old := to(topic, 0, "x")
	old.Timestamp = time.UnixMilli(1000)
	send(t, kafkaConfig(t, kafka.ConfigMap{"compression.type": "lz4"}), old)
	c := newConsumer(t, topic, nil)
	do(t, c.SubscribeTopics([]string{topic}, nil))
	if m := receive(t, c); m.TimestampType != kafka.TimestampLogAppendTime || m.Timestamp.Before(began) {
		t.Errorf("got %s of type %s, want the time of the append", m.Timestamp, m.TimestampType)
	}
}

// TestKafkaGroups checks with all group protocols and assignors of librdkafka that two
// consumers share four partitions, and that the remaining one continues at the offsets that
// the other had committed.
func TestKafkaGroups(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]kafka.ConfigMap{
		"range": {"partition.assignment.strategy": "range", "session.timeout.ms": 6000, "heartbeat.interval.ms": 300},
		"cooperative-sticky": {
			"partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": 6000,
			"heartbeat.interval.ms": 300,
		},
		"consumer":        {"group.protocol": "consumer"},
		"consumer, range": {"group.protocol": "consumer", "group.remote.assignor": "range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic, group := newTopic(t, "group", 4, nil), unique("group")
			produce := func(value string) {
				send(t, kafkaConfig(t, kafka.ConfigMap{"enable.idempotence": true}), to(topic, 0, value),
					to(topic, 1, value), to(topic, 2, value), to(topic, 3, value))
			}
			produce("first")
			one := newConsumer(t, group, more)
			do(t, one.SubscribeTopics([]string{topic}, nil))
			for range 4 {
				receive(t, one)
			}
			_, err := one.Commit()
			do(t, err)
			two := newConsumer(t, group, more)
			do(t, two.SubscribeTopics([]string{topic}, nil))
			share(t, one, two)
			produce("second")
			for range 2 {
				for _, c := range []*kafka.Consumer{one, two} {
					if m := receive(t, c); string(m.Value) != "second" {
						t.Errorf("got %q of partition %d, want second", m.Value, m.TopicPartition.Partition)
					}
				}
			}
			for _, c := range []*kafka.Consumer{one, two} {
				_, err := c.Commit()
				do(t, err)
			}
			do(t, two.Close())
			produce("third")
			seen := map[int32]bool{}
			for len(seen) < 4 {
				m := receive(t, one)
				if seen[m.TopicPartition.Partition] = true; string(m.Value) != "third" {
					t.Errorf("after the other has left: got %q, want third", m.Value)
				}
			}
		})
	}
}

// share polls two consumers until each has two partitions.
func share(t *testing.T, one, two *kafka.Consumer) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); ; {
		for _, c := range []*kafka.Consumer{one, two} {
			if e, ok := c.Poll(50).(*kafka.Message); ok {
				t.Errorf("got %q, which was already read and committed", e.Value)
			}
		}
		first, err := one.Assignment()
		do(t, err)
		second, err := two.Assignment()
		do(t, err)
		if len(first) == 2 && len(second) == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("consumers have %v and %v, want two partitions each", first, second)
		}
	}
}

// TestKafkaStaticMember checks that a consumer that rejoins with its instance id continues
// immediately with its partitions.
func TestKafkaStaticMember(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			topic, group := newTopic(t, "static", 2, nil), unique("static")
			for i := range 3 {
				c := newConsumer(t, group, kafka.ConfigMap{"group.protocol": protocol, "group.instance.id": "one"})
				do(t, c.SubscribeTopics([]string{topic}, nil))
				send(t, kafkaConfig(t, nil), to(topic, 0, fmt.Sprint(i)))
				if m := receive(t, c); string(m.Value) != fmt.Sprint(i) {
					t.Errorf("start %d: got %q, want %d", i, m.Value, i)
				}
				_, err := c.Commit()
				do(t, err)
				do(t, c.Close())
			}
		})
	}
}

// TestKafkaRegularExpression checks that a subscription by pattern includes topics that
// are created later.
func TestKafkaRegularExpression(t *testing.T) {
	t.Parallel()
	prefix := unique("pattern")
	admin := newAdmin(t)
	for _, protocol := range []string{"classic", "consumer"} {
		c := newConsumer(t, unique("pattern"),
			kafka.ConfigMap{"group.protocol": protocol, "topic.metadata.refresh.interval.ms": 500})
		do(t, c.SubscribeTopics([]string{"^" + prefix + "-" + protocol + "-.*"}, nil))
		for _, name := range []string{"a", "b"} {
			topic := prefix + "-" + protocol + "-" + name
			_, err := admin.CreateTopics(short(t),
				[]kafka.TopicSpecification{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}})
			do(t, err)
			send(t, kafkaConfig(t, nil), to(topic, 0, name))
			m := receive(t, c)
			if string(m.Value) != name {
				t.Errorf("%s: got %q, want %s", protocol, m.Value, name)
			}
			_, err = c.CommitMessage(m)
			do(t, err)
		}
	}
}

// TestKafkaAuthentication connects with a bearer token and over TLS, and checks that
// invalid credentials are rejected.
func TestKafkaAuthentication(t *testing.T) {
	t.Parallel()
	metadata := func(more kafka.ConfigMap, token string) error {
		c, err := kafka.NewAdminClient(kafkaConfig(t, more))
		do(t, err)
		defer c.Close()
		if token != "" {
			do(t, c.SetOAuthBearerToken(kafka.OAuthBearerToken{
				TokenValue: token, Expiration: time.Now().Add(time.Hour),
				Principal: "me",
			}))
		}
		_, err = c.GetMetadata(nil, true, 5_000)
		return err
	}
	for name, err := range map[string]error{
		"OAUTHBEARER": metadata(kafka.ConfigMap{"sasl.mechanism": "OAUTHBEARER"}, os.Getenv("FRESHET_TOKEN")),
		"TLS": metadata(kafka.ConfigMap{
			"bootstrap.servers": os.Getenv("FRESHET_STREAM_TLS"),
			"security.protocol": "SASL_SSL", "ssl.ca.location": os.Getenv("FRESHET_CA"),
		}, ""),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"a wrong token": metadata(kafka.ConfigMap{"sasl.password": "token:wrong"}, ""),
		"no SASL":       metadata(kafka.ConfigMap{"security.protocol": "PLAINTEXT"}, ""),
		"SCRAM":         metadata(kafka.ConfigMap{"sasl.mechanism": "SCRAM-SHA-256"}, ""),
	} {
		if err == nil {
			t.Errorf("%s: connected, want an error", name)
		}
	}
}

// TestKafkaRefusals checks that clients get the specific error codes.
func TestKafkaRefusals(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "refused", 1,
		map[string]string{"max.message.bytes": "2000", "kop.stream.value.schema.validation": "true"})
	p, err := kafka.NewProducer(
		kafkaConfig(t, kafka.ConfigMap{"allow.auto.create.topics": false, "message.timeout.ms": 5_000}))
	do(t, err)
	defer p.Close()
	deliver := func(m *kafka.Message) kafka.ErrorCode {
		t.Helper()
		delivered := make(chan kafka.Event, 1)
		err := p.Produce(m, delivered)
		if err == nil {
			message, _ := (<-delivered).(*kafka.Message)
			err = message.TopicPartition.Error
		}
		var failed kafka.Error
		if !errors.As(err, &failed) {
			return kafka.ErrNoError
		}
		return failed.Code()
	}
	framed := string(binary.BigEndian.AppendUint32([]byte{0}, 1<<30))
	for name, c := range map[string]struct {
		message *kafka.Message
		want    kafka.ErrorCode
	}{
		"a batch that is too large": {to(topic, 0, strings.Repeat("x", 3000)), kafka.ErrMsgSizeTooLarge},
		"a value without schema id": {to(topic, 0, "plain"), kafka.ErrInvalidRecord},
		"an unknown schema id":      {to(topic, 0, framed), kafka.ErrInvalidRecord},
		"an unknown partition":      {to(topic, 7, "x"), kafka.ErrUnknownPartition},
	} {
		if got := deliver(c.message); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	transactional, err := kafka.NewProducer(kafkaConfig(t, kafka.ConfigMap{"transactional.id": "t"}))
	do(t, err)
	defer transactional.Close()
	if err := transactional.InitTransactions(short(t)); err == nil {
		t.Error("transactions: got no error, want one")
	}
}
