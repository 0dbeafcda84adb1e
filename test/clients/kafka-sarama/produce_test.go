package sarama_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// TestProduceConsume sends records of every kind with every codec, through both kinds of
// producers and with several protocol versions, and reads them back.
func TestProduceConsume(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codec   sarama.CompressionCodec
		version sarama.KafkaVersion
	}{
		{sarama.CompressionNone, sarama.V0_11_0_0},
		{sarama.CompressionGZIP, sarama.V1_0_0_0},
		{sarama.CompressionSnappy, sarama.V2_0_0_0},
		{sarama.CompressionLZ4, sarama.V2_8_0_0},
		{sarama.CompressionZSTD, sarama.MaxVersion},
	} {
		t.Run(c.codec.String(), func(t *testing.T) {
			t.Parallel()
			topic := topic(t, "codec", 1)
			conf := idempotent(config(t))
			conf.Version, conf.Producer.Compression = c.version, c.codec
			if !c.version.IsAtLeast(sarama.V1_0_0_0) { // sends credentials without SaslAuthenticate
				conf.Net.SASL.Version, conf.ApiVersionsRequest = sarama.SASLHandshakeV0, false
			}
			sync, err := sarama.NewSyncProducer(servers(), conf)
			do(t, err)
			var sent []*sarama.ProducerMessage
			for i := range 50 {
				m := &sarama.ProducerMessage{
					Topic: topic, Key: sarama.StringEncoder(fmt.Sprint("key-", i%7)),
					Value:     sarama.StringEncoder(strings.Repeat("value ", i)),
					Timestamp: time.UnixMilli(1700000000000 + int64(i)),
					Headers: []sarama.RecordHeader{
						{Key: []byte("h"), Value: []byte{0xff, byte(i)}},
						{Key: []byte("h")},
					},
				}
				switch i {
				case 1:
					m.Key = nil
				case 2:
					m.Value = nil
				case 3:
					m.Key = sarama.ByteEncoder{0xff, 0}
				}
				sent = append(sent, m)
			}
			do(t, sync.SendMessages(sent[:25]))
			do(t, sync.Close())
			async, err := sarama.NewAsyncProducer(servers(), conf)
			do(t, err)
			go func() {
				for _, m := range sent[25:] {
					async.Input() <- m
				}
			}()
			for range 25 {
				select {
				case <-async.Successes():
				case err := <-async.Errors():
					t.Fatal(err)
				}
			}
			do(t, async.Close())

			consumer, err := sarama.NewConsumer(servers(), conf)
			do(t, err)
			closing(t, consumer)
			partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
			do(t, err)
			closing(t, partition)
			for i, want := range sent {
				compare(t, int64(i), within(t, partition.Messages(), "a record"), want)
			}
			if watermark := partition.HighWaterMarkOffset(); watermark != 50 {
				t.Errorf("high watermark: got %d, want 50", watermark)
			}
		})
	}
}

func compare(t *testing.T, offset int64, got *sarama.ConsumerMessage, want *sarama.ProducerMessage) {
	t.Helper()
	bytes := func(e sarama.Encoder) []byte {
		if e == nil {
			return nil
		}
		b, err := e.Encode()
		do(t, err)
		return b
	}
	key, value := bytes(want.Key), bytes(want.Value)
	if got.Offset != offset || string(got.Key) != string(key) || (got.Key == nil) != (key == nil) ||
		string(got.Value) != string(value) || (got.Value == nil) != (value == nil) ||
		!got.Timestamp.Equal(want.Timestamp) || len(got.Headers) != len(want.Headers) ||
		!slices.Equal(got.Headers[0].Value, want.Headers[0].Value) || got.Headers[1].Value != nil {
		t.Errorf("record %d: got %+v, want %+v", offset, got, want)
	}
}

// TestOffsets looks up offsets by time and reads from there; offsets outside of the
// partition are rejected.
func TestOffsets(t *testing.T) {
	t.Parallel()
	topic := topic(t, "offsets", 1)
	client, err := sarama.NewClient(servers(), idempotent(config(t)))
	do(t, err)
	closing(t, client)
	offset := func(at int64) int64 {
		t.Helper()
		o, err := client.GetOffset(topic, 0, at)
		do(t, err)
		return o
	}
	if first, last := offset(sarama.OffsetOldest), offset(sarama.OffsetNewest); first != 0 || last != 0 {
		t.Errorf("offsets of an empty partition: got %d and %d, want 0", first, last)
	}
	producer, err := sarama.NewSyncProducerFromClient(client)
	do(t, err)
	for i := range int64(10) {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: topic, Value: sarama.StringEncoder("x"),
			Timestamp: time.UnixMilli(1000 + 10*i),
		})
		do(t, err)
	}
	for at, want := range map[int64]int64{
		sarama.OffsetOldest: 0, sarama.OffsetNewest: 10, 1000: 0, 1005: 1,
		1050: 5, 5000: -1,
	} {
		if got := offset(at); got != want {
			t.Errorf("offset at %d: got %d, want %d", at, got, want)
		}
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	do(t, err)
	partition, err := consumer.ConsumePartition(topic, 0, 7)
	do(t, err)
	if m := within(t, partition.Messages(), "a record"); m.Offset != 7 {
		t.Errorf("reading from 7: got %d", m.Offset)
	}
	do(t, partition.Close())
	if _, err := consumer.ConsumePartition(topic, 0, 11); !errors.Is(err, sarama.ErrOffsetOutOfRange) {
		t.Errorf("reading beyond the end: got %v, want %v", err, sarama.ErrOffsetOutOfRange)
	}
}

// TestRefusals checks the errors that a producer gets.
func TestRefusals(t *testing.T) {
	t.Parallel()
	name := unique("refused")
	do(t, admin(t, config(t)).CreateTopic(name,
		&sarama.TopicDetail{
			NumPartitions: 1, ReplicationFactor: 1,
			ConfigEntries: entries("max.message.bytes", "2000", "cleanup.policy", "compact"),
		}, false))
	conf := config(t)
	conf.Metadata.AllowAutoTopicCreation, conf.Metadata.Retry.Max = false, 0
	producer, err := sarama.NewSyncProducer(servers(), conf)
	do(t, err)
	closing(t, producer)
	for what, c := range map[string]struct {
		message *sarama.ProducerMessage
		want    sarama.KError
	}{
		"a batch that is too large": {&sarama.ProducerMessage{
			Topic: name, Key: sarama.StringEncoder("k"),
			Value: sarama.StringEncoder(strings.Repeat("x", 3000)),
		}, sarama.ErrMessageSizeTooLarge},
		"no key on a compacted topic": {&sarama.ProducerMessage{
			Topic: name,
			Value: sarama.StringEncoder("x"),
		}, sarama.ErrInvalidRecord},
		"a topic that does not exist": {&sarama.ProducerMessage{
			Topic: unique("unknown"),
			Value: sarama.StringEncoder("x"),
		}, sarama.ErrUnknownTopicOrPartition},
		"an invalid topic name": {&sarama.ProducerMessage{
			Topic: "not a topic",
			Value: sarama.StringEncoder("x"),
		}, sarama.ErrInvalidTopic},
	} {
		if _, _, err := producer.SendMessage(c.message); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
	}
	conf = idempotent(config(t))
	conf.Producer.Transaction.ID, conf.Producer.Transaction.Retry.Max = "t", 1
	if _, err := sarama.NewAsyncProducer(servers(), conf); err == nil {
		t.Error("transactional producer: got no error, want one")
	}
}

type bearer string

// Token implements sarama.AccessTokenProvider.
func (b bearer) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(b)}, nil
}

// TestAuthentication connects with both mechanisms, over TLS with the cluster's host name,
// and with invalid credentials.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	connect := func(address string, change func(*sarama.Config)) error {
		c := config(t)
		c.Metadata.Retry.Max = 0
		change(c)
		client, err := sarama.NewClient([]string{address}, c)
		if err != nil {
			return err
		}
		if _, err = client.Topics(); err == nil {
			_, err = client.Controller()
		}
		return errors.Join(err, client.Close())
	}
	plain, secured := os.Getenv("FRESHET_STREAM"), os.Getenv("FRESHET_STREAM_TLS")
	withTLS := func(name string) func(*sarama.Config) {
		return func(c *sarama.Config) {
			c.Net.TLS.Enable, c.Net.TLS.Config = true, authority(t)
			c.Net.TLS.Config.ServerName = name
		}
	}
	withBearer := func(token string) func(*sarama.Config) {
		return func(c *sarama.Config) {
			c.Net.SASL.Mechanism, c.Net.SASL.TokenProvider = sarama.SASLTypeOAuth, bearer(token)
		}
	}
	for what, err := range map[string]error{
		"OAUTHBEARER":       connect(plain, withBearer(os.Getenv("FRESHET_TOKEN"))),
		"TLS":               connect(secured, withTLS("127.0.0.1")),
		"TLS, cluster name": connect(secured, withTLS("default.default.freshet.localhost")),
		"the first handshake of the protocol": connect(plain, func(c *sarama.Config) {
			c.Version, c.Net.SASL.Version, c.ApiVersionsRequest = sarama.V0_11_0_0, sarama.SASLHandshakeV0, false
		}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"a wrong password":     connect(plain, func(c *sarama.Config) { c.Net.SASL.Password = "token:wrong" }),
		"a wrong token":        connect(plain, withBearer("wrong")),
		"a name of no cluster": connect(secured, withTLS("nobody.default.freshet.localhost")),
		"an unknown namespace": connect(plain, func(c *sarama.Config) { c.Net.SASL.User = "nobody/nowhere" }),
		"SCRAM": connect(plain, func(c *sarama.Config) {
			c.Net.SASL.Mechanism, c.Net.SASL.SCRAMClientGeneratorFunc = sarama.SASLTypeSCRAMSHA256, scram
		}),
	} {
		if err == nil {
			t.Errorf("%s: connected, want an error", what)
		}
	}
}

// scram returns no client: the server rejects the mechanism before the client is used.
func scram() sarama.SCRAMClient { return nil }
