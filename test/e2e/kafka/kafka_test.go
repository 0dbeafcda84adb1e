package kafka_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet/test/poll"
	"freshet/test/stamp"
	"freshet/test/tally"
	"freshet/test/testserver"
)

func start(t *testing.T, o testserver.Options) *testserver.Server {
	t.Helper()
	o.Kafka = true
	s, err := testserver.Start(t.Context(), binary, t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t *testing.T, s *testserver.Server) {
	t.Helper()
	if err := s.Stop(30 * time.Second); err != nil {
		t.Error(err)
	}
}

// client opens a Kafka client as the system administrator.
func client(t *testing.T, s *testserver.Server, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.Kafka),
		kgo.SASL(plain.Auth{User: "user", Pass: "token:" + s.Token}.AsMechanism()),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// get makes a request to the message API.
func get(t *testing.T, s *testserver.Server, method, path string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(body)
}

// TestKafka checks that a client needs only the address and the token. Its messages can be
// read over HTTP, also after a restart, and its consumer group continues at its offsets.
func TestKafka(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, testserver.Options{DataDir: dir})
	ctx := within(t, time.Minute)
	c := client(t, s, kgo.DefaultProduceTopic("orders"), kgo.AllowAutoTopicCreation())
	if _, err := kadm.NewClient(c).CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	if status, _, text := get(t, s, http.MethodPut,
		"/admin/v2/persistent/public/default/orders/subscription/web"); status/100 != 2 {
		t.Fatalf("subscribe: got %d %s, want success", status, text)
	}
	for i := range 10 {
		if err := c.ProduceSync(ctx,
			&kgo.Record{Key: []byte("k"), Value: fmt.Append(nil, "order ", i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	group := client(t, s, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("team"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if fetches := group.PollRecords(ctx, 4); len(fetches.Records()) != 4 || fetches.Err() != nil {
		t.Fatalf("got %d records, %v; want 4", len(fetches.Records()), fetches.Err())
	}
	if err := group.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	group.Close()
	c.Close()
	stop(t, s)

	s = start(t, testserver.Options{DataDir: dir})
	defer stop(t, s)
	lags, err := kadm.NewClient(client(t, s)).Lag(ctx, "team")
	if err != nil || lags["team"].Lag.Total() != 6 {
		t.Errorf("lag after a restart: got %d, %v; want 6", lags["team"].Lag.Total(), err)
	}
	group = client(t, s, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("team"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	records := group.PollRecords(ctx, 6).Records()
	if len(records) == 0 || string(records[0].Value) != "order 4" {
		t.Errorf("group continues with %v, want order 4", records)
	}
	status, header, text := get(t, s, http.MethodPost, "/admin/rest/topics/v1/public/default/orders/web/message")
	if status != http.StatusOK || text != "order 0" {
		t.Errorf("over HTTP: got %d %v %q, want order 0", status, header, text)
	}
}

// TestKafkaTLS checks that the server's own authority issues a certificate for the name that
// a client requests, and that an unknown name below the domain is rejected.
func TestKafkaTLS(t *testing.T) {
	t.Parallel()
	s := start(t, testserver.Options{})
	defer stop(t, s)
	text, err := os.ReadFile(filepath.Join(s.DataDir, "tls", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	ping := func(name string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return client(t, s, kgo.SeedBrokers(s.KafkaTLS), kgo.RetryTimeout(time.Second),
			kgo.DialTLSConfig(&tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12})).Ping(ctx)
	}
	if err := ping("default.default.freshet.localhost"); err != nil {
		t.Errorf("name of the cluster: %v", err)
	}
	if err := ping("nobody.default.freshet.localhost"); err == nil {
		t.Error("unknown name below the domain: connected, want an error")
	}
}

// killTopics maps the topics of TestFaultKillKafka to their numbers of partitions.
var killTopics = map[string]int{"log-0": 1, "log-1": 2, "log-2": 3, "log-3": 2, "log-4": 4}

// killSize returns the size of record n. Every 13th is larger than 64 KiB, so that a Fetch
// response has several parts.
func killSize(n int) int {
	if n%13 == 0 { // affects every topic
		return 65<<10 + n*100%(100<<10)
	}
	return 100
}

// TestFaultKillKafka kills the server under an idempotent producer. Everything acknowledged
// exists, once, in order, and in the topic and partition that it was sent to.
func TestFaultKillKafka(t *testing.T) {
	t.Parallel()
	kills := 3
	if tally.Long() {
		kills = 15
	}
	dir := t.TempDir()
	s := start(t, testserver.Options{DataDir: dir})
	address := s.Kafka // clients cache it
	args := []string{"--stream", address}
	fault := tally.Fault{Name: "kill -9 under an idempotent producer"}
	topics := slices.Sorted(maps.Keys(killTopics))
	for topic, partitions := range killTopics {
		admin := kadm.NewClient(client(t, s))
		if _, err := admin.CreateTopic(t.Context(), int32(partitions), 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	acked := map[int]int64{}
	next := 0
	producer := client(t, s, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordDeliveryTimeout(time.Minute),
		kgo.MaxBufferedRecords(200), kgo.ProducerLinger(0))
	for range kills {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				n := next
				next++
				topic := topics[n%len(topics)]
				partition := int32(n / len(topics) % killTopics[topic])
				message := stamp.Stamp{Topic: topic, Partition: partition, Writer: "producer", Number: n}
				record := &kgo.Record{Topic: topic, Partition: partition, Value: message.Value(killSize(n))}
				producer.Produce(t.Context(), record, func(r *kgo.Record, err error) {
					if err == nil {
						mu.Lock()
						acked[n] = r.Offset
						mu.Unlock()
					}
				})
			}
		}()
		want := func() int { mu.Lock(); defer mu.Unlock(); return len(acked) }
		for before, ticker := want(), time.NewTicker(5*time.Millisecond); want() < before+300; {
			<-ticker.C
		}
		cancel()
		s.Kill()
		fault.Injected++
		began := time.Now()
		s = start(t, testserver.Options{DataDir: dir, Args: args})
		<-done
		if err := producer.Flush(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		fault.Recovery = max(fault.Recovery, time.Since(began))
	}
	defer stop(t, s)
	consumer := client(t, s, kgo.SeedBrokers(address), kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(1<<20),
		kgo.FetchMaxPartitionBytes(250<<10))
	seen := readAll(t, consumer, next, &fault)
	for n, offset := range acked {
		fault.Checked++
		if got, ok := seen[n]; !ok {
			fault.Lost++
		} else if got != offset {
			fault.Wrong++
		}
	}
	fault.Record(t)
}

// readAll consumes until it has want records or 20 s without a record have passed. It counts
// foreign and damaged records, and records that are duplicated or out of order in their
// partition. It returns offsets by record number.
func readAll(t *testing.T, consumer *kgo.Client, want int, fault *tally.Fault) map[int]int64 {
	t.Helper()
	seen := map[int]int64{}
	last := map[string]int{} // last number by topic and partition
	for ctx := within(t, 20*time.Second); len(seen) < want && ctx.Err() == nil; {
		fetches := consumer.PollFetches(ctx)
		if !fetches.Empty() {
			ctx = within(t, 20*time.Second)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got, err := stamp.Check(r.Value, r.Topic, r.Partition)
			if errors.Is(err, stamp.ErrForeign) {
				fault.Foreign++
				return
			}
			before, ok := last[got.Origin()]
			if err != nil || ok && got.Number <= before {
				fault.Wrong++
				return
			}
			last[got.Origin()], seen[got.Number] = got.Number, r.Offset
		})
	}
	return seen
}

// TestBannerShowsACommandThatWorks checks that the startup screen contains the address that
// clients reach.
func TestBannerShowsACommandThatWorks(t *testing.T) {
	t.Parallel()
	s := start(t, testserver.Options{})
	defer stop(t, s)
	want := "kcat -b " + s.Kafka + " "
	poll.Until(t, time.Minute, "a startup screen with "+want, func() bool { return strings.Contains(s.Log(), want) })
}
