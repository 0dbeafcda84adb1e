package clients_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sr"
)

// franz opens a franz-go client.
func (s *kafkaServer) franz(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(
		append([]kgo.Opt{
			kgo.SeedBrokers(s.Kafka),
			kgo.SASL(plain.Auth{User: "user", Pass: "token:" + s.Token}.AsMechanism()),
		}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func timeoutContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// writeAvro fills the topic that clients in other languages read with three orders in
// Avro. An HTTP consumer receives and acknowledges them too.
func (s *kafkaServer) writeAvro(t *testing.T) {
	t.Helper()
	ctx := timeoutContext(t)
	client := s.franz(t, kgo.DefaultProduceTopic(s.avro))
	validated := "true"
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 2, 1,
		map[string]*string{"kop.stream.value.schema.validation": &validated}, s.avro); err != nil {
		t.Fatal(err)
	}
	s.http(t, http.MethodPut, "/admin/v2/persistent/public/default/"+s.avro+"/subscription/web", `"earliest"`)
	registry, err := sr.NewClient(sr.URLs(s.URL), sr.BasicAuth("user", s.Token))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := registry.CreateSchema(ctx, s.avro+"-value",
		sr.Schema{Schema: `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},` +
			`{"name":"note","type":"string"}]}`})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		value := binary.BigEndian.AppendUint32([]byte{0}, uint32(schema.ID))
		value = binary.AppendVarint(value, int64(i)) // Avro uses the same zigzag encoding
		note := fmt.Sprint("order ", i)
		value = append(binary.AppendVarint(value, int64(len(note))), note...)
		if err := client.ProduceSync(ctx,
			&kgo.Record{Key: fmt.Append(nil, "customer-", i), Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		path := "/admin/rest/topics/v1/public/default/" + s.avro + "/web/message"
		header, body := s.http(t, http.MethodPost, path, "")
		if len(body) < 5 || int(binary.BigEndian.Uint32([]byte(body)[1:])) != schema.ID ||
			header.Get("X-Msg-Schema-Id") != fmt.Sprint(schema.ID) {
			t.Errorf("over HTTP: got %q with %v, want a value of schema %d", body, header, schema.ID)
		}
		s.http(t, http.MethodPut, path, `"`+header.Get("X-Msg-Message-Id")+`"`)
	}
}

// http makes an HTTP request that must succeed.
func (s *kafkaServer) http(t *testing.T, method, path, body string) (http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: got %s %s, %v; want success", method, path, response.Status, text, err)
	}
	return response.Header, string(text)
}

func testFranz(t *testing.T, s *kafkaServer) {
	t.Helper()
	t.Run("howto", func(t *testing.T) {
		t.Parallel()
		need(t, "go")
		// Built in the folder of this module, run in the folder with the page's files.
		build := func(folder, file string) string {
			program := filepath.Join(folder, "program")
			s.must(t, "../..", []string{"CGO_ENABLED=0"}, "go", "build", "-o", program, file)
			return s.must(t, folder, nil, program)
		}
		s.runHowto(t, "Go", "go", build, "customer-7: {ID:7 To:Bern}")
	})
	t.Run("origins", func(t *testing.T) { testFranzOrigins(t, s) })
	t.Run("groups", func(t *testing.T) { testFranzGroups(t, s) })
	t.Run("HTTP", func(t *testing.T) { testFranzHTTP(t, s) })
	t.Run("topics", func(t *testing.T) { testFranzTopics(t, s) })
	t.Run("offsets", func(t *testing.T) { testFranzOffsets(t, s) })
}

// testFranzGroups checks that two members share four partitions with every balancer of
// the client and of the server, and that the remaining member takes over all partitions.
func testFranzGroups(t *testing.T, s *kafkaServer) {
	t.Helper()
	for name, opts := range map[string][]kgo.Opt{
		"range":              {kgo.Balancers(kgo.RangeBalancer())},
		"roundrobin":         {kgo.Balancers(kgo.RoundRobinBalancer())},
		"sticky":             {kgo.Balancers(kgo.StickyBalancer())},
		"cooperative-sticky": {kgo.Balancers(kgo.CooperativeStickyBalancer())},
		"server, uniform":    {kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())},
		"server, range":      {kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := timeoutContext(t)
			topic := "franz-" + strings.NewReplacer(", ", "-").Replace(name)
			admin := kadm.NewClient(s.franz(t))
			if _, err := admin.CreateTopic(ctx, 4, 1, nil, topic); err != nil {
				t.Fatal(err)
			}
			producer := s.franz(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
			send := func(value string) {
				t.Helper()
				for i := range int32(4) {
					if err := producer.ProduceSync(ctx,
						&kgo.Record{Partition: i, Value: []byte(value)}).FirstErr(); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := make(chan string, 100)
			members := make([]*kgo.Client, 2)
			for i := range members {
				all := append([]kgo.Opt{
					kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic),
					kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
					kgo.HeartbeatInterval(300 * time.Millisecond), kgo.InstanceID(fmt.Sprint(i)),
				}, opts...)
				m := s.franz(t, all...)
				members[i] = m
				go func() {
					for {
						fetches := m.PollFetches(ctx)
						if fetches.IsClientClosed() || ctx.Err() != nil {
							return
						}
						if err := m.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
							continue // a rebalance: a member reads the records again
						}
						fetches.EachRecord(func(r *kgo.Record) { got <- fmt.Sprint(i, " ", string(r.Value)) })
					}
				}()
			}
			s.awaitShares(ctx, t, admin, topic, strings.HasPrefix(name, "server"))
			send("x")
			count := map[string]int{}
			for range 4 {
				select {
				case v := <-got:
					count[v]++
				case <-ctx.Done():
					t.Fatalf("got %v, want four records", count)
				}
			}
			if count["0 x"] != 2 || count["1 x"] != 2 {
				t.Errorf("got %v, want two records for each member", count)
			}
			// A static member that leaves permanently is removed by its instance id.
			members[1].Close()
			if _, err := admin.LeaveGroup(ctx, kadm.LeaveGroup(topic).InstanceIDs("1")); err != nil &&
				!strings.HasPrefix(name, "server") {
				t.Errorf("leave: %v", err)
			}
			if strings.HasPrefix(name, "server") {
				return // the member may rejoin for 45 s
			}
			send("y")
			for n := 0; n < 4; {
				select {
				case v := <-got:
					if v == "0 y" {
						n++
					}
				case <-ctx.Done():
					t.Fatalf("got %d of 4 records after the other member has left", n)
				}
			}
		})
	}
}

// awaitShares waits until two members have two partitions each.
func (s *kafkaServer) awaitShares(ctx context.Context, t *testing.T, admin *kadm.Client, group string, byServer bool) {
	t.Helper()
	for ctx.Err() == nil {
		shares := 0
		if byServer {
			described, err := admin.DescribeConsumerGroups(ctx, group)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range described[group].Members {
				for _, assigned := range m.Assignment {
					if len(assigned) == 2 {
						shares++
					}
				}
			}
		} else {
			described, err := admin.DescribeGroups(ctx, group)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range described[group].Members {
				if assigned, ok := m.Assigned.AsConsumer(); ok && described[group].State == "Stable" &&
					len(assigned.Topics) == 1 && len(assigned.Topics[0].Partitions) == 2 {
					shares++
				}
			}
		}
		if shares == 2 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("group %s: two members did not get two partitions each", group)
}

// testFranzTopics tests kadm's functions for topics and brokers.
func testFranzTopics(t *testing.T, s *kafkaServer) {
	t.Helper()
	t.Parallel()
	ctx := timeoutContext(t)
	client := s.franz(t)
	admin := kadm.NewClient(client)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const topic = "franz-topics"
	retention := "3600000"
	if _, err := admin.ValidateCreateTopics(ctx, 1, 1, nil, topic); err != nil {
		t.Errorf("validate: %v", err)
	}
	created, err := admin.CreateTopic(ctx, -1, -1, map[string]*string{"retention.ms": &retention}, topic)
	if err != nil || created.NumPartitions != 1 || created.ReplicationFactor != 1 ||
		*created.Configs["retention.ms"].Value != retention {
		t.Errorf("create: got %+v, %v; want one partition", created, err)
	}
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, topic); !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("create again: got %v, want %v", err, kerr.TopicAlreadyExists)
	}
	grown, err := admin.CreatePartitions(ctx, 2, topic)
	ok(errors.Join(err, grown.Error()))
	listed, err := admin.ListTopics(ctx, topic)
	if err != nil || len(listed[topic].Partitions) != 3 || listed[topic].ID == (kadm.TopicID{}) {
		t.Errorf("list: got %+v, %v; want three partitions and an id", listed, err)
	}
	altered, err := admin.AlterTopicConfigs(ctx,
		[]kadm.AlterConfig{
			{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &[]string{"100000"}[0]},
			{Op: kadm.DeleteConfig, Name: "retention.ms"},
		}, topic)
	ok(err)
	ok(altered[0].Err)
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	ok(err)
	for _, c := range configs[0].Configs {
		if want := map[string]string{"max.message.bytes": "100000", "retention.ms": "604800000"}[c.Key]; want != "" &&
			*c.Value != want {
			t.Errorf("%s: got %s, want %s", c.Key, *c.Value, want)
		}
	}
	replaced, err := admin.AlterTopicConfigsState(ctx,
		[]kadm.AlterConfig{{Name: "retention.bytes", Value: &[]string{"1000"}[0]}}, topic)
	ok(err)
	ok(replaced[0].Err)
	if refused, err := admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Name: "broker.id", Value: &[]string{"2"}[0]}},
		1); err != nil || !errors.Is(refused[0].Err, kerr.PolicyViolation) {
		t.Errorf("changing the broker: got %v, %v; want %v", refused, err, kerr.PolicyViolation)
	}
	if resources, err := admin.ListConfigResources(ctx); err != nil || resources.Err != nil ||
		len(resources.Resources) == 0 {
		t.Errorf("configuration resources: got %+v, %v; want some", resources, err)
	}
	ok(client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr())
	producers, err := admin.DescribeProducers(ctx, kadm.TopicsSet{topic: {0: {}, 1: {}, 2: {}}})
	ok(err)
	active := 0
	producers.EachProducer(func(kadm.DescribedProducer) { active++ })
	if active != 1 {
		t.Errorf("producers: got %+v, want one", producers)
	}
	dirs, err := admin.DescribeAllLogDirs(ctx, kadm.TopicsSet{topic: {0: {}, 1: {}, 2: {}}})
	if all := dirs.Sorted(); err != nil || len(all) != 1 || all[0].Size() == 0 {
		t.Errorf("log dirs: got %+v, %v; want one with a size", dirs, err)
	}
	brokers, err := admin.ListBrokers(ctx)
	if err != nil || len(brokers) != 1 || brokers[0].NodeID != 1 {
		t.Errorf("brokers: got %+v, %v; want one", brokers, err)
	}
	versions, err := admin.ApiVersions(ctx)
	broker := versions[1]
	if highest, served := broker.KeyMaxVersion(68); err != nil || !served || highest != 1 { // ConsumerGroupHeartbeat
		t.Errorf("versions: got %+v, %v; want the consumer protocol among them", versions, err)
	}
	acls, err := admin.DescribeACLs(ctx,
		kadm.NewACLs().AnyResource().ResourcePatternType(kadm.ACLPatternAny).Operations(
			kadm.OpAny).Allow().AllowHosts())
	if err != nil || len(acls) == 0 || acls[0].Err != nil {
		t.Errorf("access lists: got %+v, %v; want some", acls, err)
	}
	deleted, err := admin.DeleteTopics(ctx, topic)
	ok(errors.Join(err, deleted.Error()))
}

// testFranzOffsets tests kadm's functions for offsets of topics and consumer groups.
func testFranzOffsets(t *testing.T, s *kafkaServer) {
	t.Helper()
	t.Parallel()
	ctx := timeoutContext(t)
	const topic, group = "franz-offsets", "franz-offsets"
	client := s.franz(t, kgo.DefaultProduceTopic(topic))
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	for i := range int64(10) {
		// The largest timestamp is in the middle.
		if err := client.ProduceSync(ctx,
			&kgo.Record{Value: []byte("x"), Timestamp: time.UnixMilli(1000 + 10*(i%6))}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	cut, err := admin.DeleteRecords(ctx, kadm.Offsets{topic: {0: {Topic: topic, At: 2}}})
	if err != nil || cut[topic][0].LowWatermark != 2 || cut.Error() != nil {
		t.Errorf("delete records: got %+v, %v; want the log to start at 2", cut, err)
	}
	at := func(name string, got kadm.ListedOffsets, err error, want int64) {
		t.Helper()
		if err != nil || got.Error() != nil || got[topic][0].Offset != want {
			t.Errorf("%s: got %+v, %v; want %d", name, got[topic][0], err, want)
		}
	}
	got, err := admin.ListStartOffsets(ctx, topic)
	at("start", got, err, 2)
	got, err = admin.ListEndOffsets(ctx, topic)
	at("end", got, err, 10)
	got, err = admin.ListCommittedOffsets(ctx, topic)
	at("last stable", got, err, 10)
	got, err = admin.ListMaxTimestampOffsets(ctx, topic)
	at("largest timestamp", got, err, 5)
	got, err = admin.ListLocalLogStartOffsets(ctx, topic)
	at("local start", got, err, 2)
	got, err = admin.ListLatestRemoteOffsets(ctx, topic)
	at("remote", got, err, -1)
	got, err = admin.ListOffsetsAfterMilli(ctx, 1035, topic)
	at("at a time", got, err, 4)
	epochs, err := admin.OffsetForLeaderEpoch(ctx, kadm.OffsetForLeaderEpochRequest{topic: {0: 0}})
	if err != nil || epochs[topic][0].EndOffset != 10 || epochs[topic][0].LeaderEpoch != 0 {
		t.Errorf("end of the epoch: got %+v, %v; want 10", epochs, err)
	}
	if err := admin.CommitAllOffsets(ctx, group,
		kadm.Offsets{topic: {0: {Topic: topic, At: 4, LeaderEpoch: 0, Metadata: "note"}}}); err != nil {
		t.Fatal(err)
	}
	fetched := admin.FetchManyOffsets(ctx, group, "franz-nobody")
	if o, ok := fetched[group].Fetched.Lookup(topic, 0); !ok || o.At != 4 || o.Metadata != "note" ||
		fetched["franz-nobody"].Err != nil {
		t.Errorf("offsets: got %+v, want 4", fetched)
	}
	lags, err := admin.Lag(ctx, group)
	if err != nil || lags[group].Lag.Total() != 6 || lags[group].State != "Empty" {
		t.Errorf("lag: got %+v, %v; want 6", lags[group], err)
	}
	if found := admin.FindGroupCoordinators(ctx, group); found.Error() != nil || found[group].NodeID != 1 {
		t.Errorf("coordinator: got %+v, want broker 1", found)
	}
	if found := admin.FindTxnCoordinators(ctx, "t"); !errors.Is(found["t"].Err, kerr.UnsupportedVersion) {
		t.Errorf("coordinator of a transaction: got %+v, want %v", found, kerr.UnsupportedVersion)
	}
	gone, err := admin.DeleteOffsets(ctx, group, kadm.TopicsSet{topic: {0: {}}})
	if err := errors.Join(err, gone.Error()); err != nil {
		t.Errorf("delete an offset: %v", err)
	}
	deleted, err := admin.DeleteGroups(ctx, group)
	if err := errors.Join(err, deleted.Error()); err != nil {
		t.Errorf("delete the group: %v", err)
	}
}

// testFranzHTTP checks that a consumer group reads messages produced over HTTP, singly and
// in batches, as records between those of Kafka producers.
func testFranzHTTP(t *testing.T, s *kafkaServer) {
	t.Helper()
	t.Parallel()
	ctx := timeoutContext(t)
	const topic = "franz-http"
	client := s.franz(t, kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	path := "/admin/rest/topics/v1/public/default/" + topic
	s.http(t, http.MethodPost, path+"/messages",
		`{"encoding": "text", "messages": [{"key": "k", "payload": "one", "properties": {"p": "v"}}, `+
			`{"payload": "two"}]}`)
	if err := client.ProduceSync(ctx, &kgo.Record{Value: []byte("three")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	s.http(t, http.MethodPost, path+"/message", `"four"`)
	var records []*kgo.Record
	for len(records) < 4 && ctx.Err() == nil {
		records = append(records, client.PollFetches(ctx).Records()...)
	}
	if len(records) != 4 {
		t.Fatalf("got %d records, want 4", len(records))
	}
	for i, want := range []string{"one", "two", "three", `"four"`} {
		if r := records[i]; string(r.Value) != want || r.Offset != int64(i) ||
			r.Timestamp.Before(time.Now().Add(-time.Hour)) {
			t.Errorf("record %d: got %+v, want %s with a current timestamp", i, r, want)
		}
	}
	if r := records[0]; string(r.Key) != "k" || len(r.Headers) != 1 || r.Headers[0].Key != "p" ||
		string(r.Headers[0].Value) != "v" || records[1].Key != nil {
		t.Errorf("got key %q and headers %v, then key %q; want k, p=v and none", r.Key, r.Headers, records[1].Key)
	}
}
