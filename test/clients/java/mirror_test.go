package java_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/test/freeport"
	"freshet/test/poll"
)

// mirrorPage has the settings of MirrorMaker.
const mirrorPage = "../../../docs/howto/migrate-kafka.md"

// mirrorLimit bounds each wait for MirrorMaker, whose intervals are seconds.
const mirrorLimit = 5 * time.Minute

// TestMirrorMaker copies topics and the offsets of a consumer group with MirrorMaker 2 from Apache
// Kafka to Freshet, and then a topic from Freshet to Apache Kafka, with the settings of the how-to page.
func TestMirrorMaker(t *testing.T) {
	t.Parallel()
	if os.Getenv("FRESHET_TEST_MIRROR") == "" {
		t.Skip("NOT TESTED: MirrorMaker 2 takes minutes; make test-mirror runs it")
	}
	need(t, "platform")
	s := start(t)
	kafka := startKafka(t)
	old, fresh := brokerClient(t, kafka, ""), brokerClient(t, s.Kafka, s.Token)
	ctx := t.Context()

	// 300 records in 3 partitions. One group has read the first 40 of each, another one all.
	if _, err := old.CreateTopic(ctx, 3, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	fill(t, kafka, "", "orders", 100)
	for group, at := range map[string]int64{"billing": 40, "shipping": 100} {
		read := kadm.Offsets{}
		for p := range int32(3) {
			read.AddOffset("orders", p, at, -1)
		}
		if err := old.CommitAllOffsets(ctx, group, read); err != nil {
			t.Fatal(err)
		}
	}

	settings := mirrorSettings(t, "mm2.properties", s, kafka)
	mirror(t, s.file("mm2.properties", settings), "freshet", func() {
		awaitEnds(t, fresh, "orders", 100)
		var state string
		defer func() { t.Log(state) }()
		poll.Until(t, mirrorLimit, "the offsets of both groups in Freshet", func() bool {
			behind, err := fresh.FetchOffsets(ctx, "billing")
			atEnd, endErr := fresh.FetchOffsets(ctx, "shipping")
			state = fmt.Sprintf("billing %v, shipping %v", behind.Offsets()["orders"], atEnd.Offsets()["orders"])
			return err == nil && endErr == nil && len(behind.Offsets()["orders"]) == 3 &&
				len(atEnd.Offsets()["orders"]) == 3
		})
		for group, limit := range map[string]int64{"billing": 40, "shipping": 100} {
			got, err := fresh.FetchOffsets(ctx, group)
			if err != nil {
				t.Fatal(err)
			}
			got.Each(func(o kadm.OffsetResponse) { // behind the group, or exact, but never ahead
				if o.Topic == "orders" && (o.At < 0 || o.At > limit) {
					t.Errorf("offset of %s in partition %d: got %d, want 0 to %d", group, o.Partition, o.At, limit)
				}
			})
		}
	})
	compareRecords(t, "orders", 300, kafka, "", s.Kafka, s.Token)

	// The way back, into an empty topic.
	if _, err := fresh.CreateTopic(ctx, 3, 1, nil, "orders-new"); err != nil {
		t.Fatal(err)
	}
	fill(t, s.Kafka, s.Token, "orders-new", 50)
	back := strings.ReplaceAll(settings, "kafka->freshet.enabled=true", "kafka->freshet.enabled=false") +
		strings.ReplaceAll(blockOf(t, "back.properties"), "topics=orders.*", "topics=orders-new")
	mirror(t, s.file("back.properties", back), "kafka", func() { awaitEnds(t, old, "orders-new", 50) })
	compareRecords(t, "orders-new", 150, s.Kafka, s.Token, kafka, "")
}

// mirrorSettings returns the settings file of the page for a server and a broker.
func mirrorSettings(t *testing.T, name string, s *server, kafka string) string {
	t.Helper()
	return strings.NewReplacer("kafka.example.com:9092", kafka, "127.0.0.1:9092", s.Kafka, "THE-API-KEY", s.Token).
		Replace(blockOf(t, name))
}

// blockOf returns a settings file of the page about MirrorMaker.
func blockOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(mirrorPage)
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```properties\n# "+name+"\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatalf("%s has no file %s", mirrorPage, name)
	}
	return block
}

// mirror runs MirrorMaker 2 towards a cluster while do runs, and then stops it with SIGTERM.
func mirror(t *testing.T, settings, towards string, do func()) {
	t.Helper()
	machines <- struct{}{}
	defer func() { <-machines }()
	libs, err := filepath.Abs(filepath.Join(libraries, "platform"))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "mirror.log")
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd := java(t.Context(), libs+"/*", nil, "org.apache.kafka.connect.mirror.MirrorMaker", settings,
		"--clusters", towards)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
		kill := time.AfterFunc(mirrorLimit, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		_ = out.Close()
		if text, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("MirrorMaker towards %s:\n%s", towards, text[max(0, len(text)-8000):])
		}
	}()
	do()
}

// startKafka runs Apache Kafka until the test ends, and returns its address.
func startKafka(t *testing.T) string {
	t.Helper()
	addresses, err := freeport.Addresses(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addresses[0])
	_, controller, _ := net.SplitHostPort(addresses[1])
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "../../../hack/kafka-peer.sh", filepath.Join(t.TempDir(), "kafka"), port)
	cmd.Env = append(os.Environ(), "HEAP=384m", "LOG_LEVEL=warn", "CONTROLLER_PORT="+controller)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
	})
	poll.Until(t, mirrorLimit, "Apache Kafka to accept connections", func() bool {
		conn, err := net.DialTimeout("tcp", addresses[0], time.Second)
		return err == nil && conn.Close() == nil
	})
	return addresses[0]
}

// kafkaClient returns a client for a broker. token is the credential for Freshet, "" for Apache Kafka.
func kafkaClient(t *testing.T, address, token string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	options = append(options, kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if token != "" {
		options = append(options, kgo.SASL(plain.Auth{User: "user", Pass: "token:" + token}.AsMechanism()))
	}
	c, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func brokerClient(t *testing.T, address, token string) *kadm.Client {
	t.Helper()
	return kadm.NewClient(kafkaClient(t, address, token))
}

// fill produces n records with keys and headers to each of three partitions.
func fill(t *testing.T, address, token, topic string, n int) {
	t.Helper()
	var records []*kgo.Record
	first := time.Now().Add(-time.Minute)
	for i := range 3 * n {
		records = append(records, &kgo.Record{
			Topic: topic, Partition: int32(i % 3), //nolint:gosec // three partitions
			Key: []byte("k" + strconv.Itoa(i)), Value: fmt.Appendf(nil, "order %d", i),
			Headers:   []kgo.RecordHeader{{Key: "n", Value: []byte(strconv.Itoa(i))}},
			Timestamp: first.Add(time.Duration(i) * time.Millisecond),
		})
	}
	if err := kafkaClient(t, address, token).ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// awaitEnds waits until each of the three partitions of a topic ends at an offset.
func awaitEnds(t *testing.T, c *kadm.Client, topic string, want int64) {
	t.Helper()
	poll.Until(t, mirrorLimit, fmt.Sprintf("%s to end at %d", topic, want), func() bool {
		ends, err := c.ListEndOffsets(t.Context(), topic)
		for p := range int32(3) {
			if end, ok := ends.Lookup(topic, p); err != nil || !ok || end.Err != nil || end.Offset < want {
				return false
			}
		}
		return true
	})
}

// compareRecords compares the n records of a topic at two brokers.
func compareRecords(t *testing.T, topic string, n int, from, fromToken, to, toToken string) {
	t.Helper()
	want, got := records(t, topic, n, from, fromToken), records(t, topic, n, to, toToken)
	for at, record := range want {
		if got[at] != record {
			t.Errorf("%s at partition and offset %v: got %q, want %q", topic, at, got[at], record)
		}
	}
}

// records reads n records of a topic, by partition and offset.
func records(t *testing.T, topic string, n int, address, token string) map[[2]int64]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mirrorLimit)
	defer cancel()
	c := kafkaClient(t, address, token, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	all := map[[2]int64]string{}
	for len(all) < n {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %d of %d records of %s: %v", len(all), n, topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			all[[2]int64{int64(r.Partition), r.Offset}] = fmt.Sprintf("%s %s %v %d", r.Key, r.Value, r.Headers,
				r.Timestamp.UnixMilli())
		})
	}
	return all
}
