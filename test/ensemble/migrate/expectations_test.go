package migrate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"freshet.dev/client"
	"freshet/internal/identity"
	"freshet/test/stamp"
)

const (
	topics          = 7
	perTopic        = 30
	halfAcked       = 11
	subscription    = "half"
	recordsPerTopic = 60
	readers         = "readers"
	cloud           = "/apis/cloud.vendor.io/v1alpha1/namespaces/default/"
)

// kafkaTopics maps Kafka topics to their numbers of partitions. The consumer group has
// committed offsets in the first of them.
var kafkaTopics = map[string]int{committedTopic: 3, "log-1": 1, "log-2": 4, "log-3": 2}

const committedTopic = "log-0"

// expectations holds what clients got from a server, and what they expect from its successor.
type expectations struct {
	t            *testing.T
	admin        string // token of the operator
	clientID     string
	clientSecret string
	key, revoked string // tokens of API keys
	account      string // uid
	version      string // resourceVersion of the account
	// by topic: ids and values that the subscription must still deliver
	undelivered map[string]map[string]string
	produced    map[string]string // by topic: id of the last message, produced with an idempotency key
	records     map[string]string // Kafka records: values by topic, partition and offset
	offsets     map[int32]int64   // committed by the consumer group, by partition
	schemas     map[int]int       // ids by version
}

// serverAddress is the address of a server: its base URL and its Kafka listener.
type serverAddress struct{ url, kafka string }

func (w *expectations) call(at serverAddress, token, method, path, body string) (status int, content []byte) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, at.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	content, err = io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, content
}

func (w *expectations) must(at serverAddress, method, path, body string) map[string]any {
	w.t.Helper()
	status, content := w.call(at, w.admin, method, path, body)
	if status < 200 || status > 299 {
		w.t.Fatalf("%s %s: got %d %s", method, path, status, content)
	}
	var out map[string]any
	if len(content) > 0 && content[0] == '{' {
		if err := json.Unmarshal(content, &out); err != nil {
			w.t.Fatal(err)
		}
	}
	return out
}

func (w *expectations) client(at serverAddress) *client.Client {
	w.t.Helper()
	c, err := client.New(client.Config{
		BaseURL: at.url, TokenSource: client.StaticToken(w.admin),
		Timeout: 20 * time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *expectations) kafka(at serverAddress, opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(at.kafka), kgo.SASL(plain.Auth{User: "user", Pass: "token:" + w.admin}.AsMechanism()),
	}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *expectations) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// fill creates every kind of data that a client can see on a new server.
func (w *expectations) fill(at serverAddress) {
	w.t.Helper()
	w.fillResources(at)
	ctx, c := w.t.Context(), w.client(at)
	w.undelivered, w.produced = map[string]map[string]string{}, map[string]string{}
	for i := range topics {
		name := fmt.Sprintf("topic-%d", i)
		topic := c.Topic(name)
		w.ok(topic.Create(ctx, client.TopicOptions{Partitions: 2}))
		sub := topic.Subscription(subscription)
		w.ok(sub.Create(ctx, client.SubscriptionOptions{}))
		w.undelivered[name] = map[string]string{}
		for n := range perTopic {
			value := stamp.Make(name, "fill", n, 200)
			produced, err := topic.Produce(ctx, client.Message{
				Key: fmt.Sprint(n % 5), Value: value, IdempotencyKey: fmt.Sprintf("%s/%d", name, n),
			})
			w.ok(err)
			w.undelivered[name][produced.StringID] = string(value)
			w.produced[name] = produced.StringID
		}
		w.consume(c, name, halfAcked)
	}
	w.fillKafka(at)
	w.schemas = map[int]int{}
	for version, schema := range []string{
		`{"type":"record","name":"o","fields":[]}`,
		`{"type":"record","name":"o","fields":[{"name":"a","type":"int","default":0}]}`,
	} {
		text, err := json.Marshal(map[string]string{"schema": schema})
		w.ok(err)
		w.schemas[version+1] = int(w.must(at, http.MethodPost, "/subjects/orders-value/versions",
			string(text))["id"].(float64))
	}
}

func (w *expectations) fillResources(at serverAddress) {
	w.t.Helper()
	w.must(at, http.MethodPost, cloud+"serviceaccounts",
		`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"ServiceAccount","metadata":{"name":"robot"}}`)
	for name, into := range map[string]*string{"good": &w.key, "over": &w.revoked} {
		made := w.must(at, http.MethodPost, cloud+"apikeys",
			fmt.Sprintf(`{"apiVersion":"cloud.vendor.io/v1alpha1","kind":"APIKey","metadata":{"name":%q},`+
				`"spec":{"serviceAccountName":"robot"}}`, name))
		*into = made["status"].(map[string]any)["token"].(string)
	}
	w.must(at, http.MethodPatch, cloud+"apikeys/over", `{"spec":{"revoke":true}}`)
	deadline := time.Now().Add(20 * time.Second)
	for !bytes.Contains(fmt.Append(nil, w.must(at, http.MethodGet, cloud+"serviceaccounts/robot", "")),
		[]byte("privateKeyData")) {
		if time.Now().After(deadline) {
			w.t.Fatal("service account got no credentials")
		}
	}
	metadata := w.must(at, http.MethodGet, cloud+"serviceaccounts/robot", "")["metadata"].(map[string]any)
	w.account, w.version = metadata["uid"].(string), metadata["resourceVersion"].(string)
}

func (w *expectations) fillKafka(at serverAddress) {
	w.t.Helper()
	ctx, c := w.t.Context(), w.client(at)
	k := w.kafka(at, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer k.Close()
	w.records = map[string]string{}
	for topic, partitions := range kafkaTopics {
		w.ok(c.Topic(topic).Create(ctx, client.TopicOptions{Partitions: partitions}))
		for n := range recordsPerTopic {
			size := 100
			if n%9 == 0 { // larger than 64 KiB: the Fetch response has several parts
				size = 65<<10 + n<<10
			}
			message := stamp.Stamp{Topic: topic, Partition: int32(n % partitions), Writer: "fill", Number: n}
			record := &kgo.Record{Topic: topic, Partition: message.Partition, Value: message.Value(size)}
			w.ok(k.ProduceSync(ctx, record).FirstErr())
			w.records[recordID(record)] = string(record.Value)
		}
	}
	w.offsets = map[int32]int64{0: 5, 1: 7, 2: 3}
	var commit kadm.Offsets
	for partition, offset := range w.offsets {
		commit.Add(kadm.Offset{Topic: committedTopic, Partition: partition, At: offset})
	}
	w.ok(kadm.NewClient(k).CommitAllOffsets(ctx, readers, commit))
}

func recordID(r *kgo.Record) string {
	return fmt.Sprintf("%s:%d:%d", r.Topic, r.Partition, r.Offset)
}

// consume receives the next messages of a topic's subscription and acknowledges them. Each
// must be unacknowledged so far and have its original id and value.
func (w *expectations) consume(c *client.Client, topic string, n int) {
	w.t.Helper()
	sub := c.Topic(topic).Subscription(subscription)
	for n > 0 {
		received, err := sub.Fetch(w.t.Context(), n, 10*time.Second, time.Minute)
		w.ok(err)
		if len(received) == 0 {
			w.t.Fatalf("%s: got no message, want %d more of %d", topic, n, len(w.undelivered[topic]))
		}
		var ids []string
		for _, r := range received {
			if want, ok := w.undelivered[topic][r.StringID]; !ok || want != string(r.Value) {
				_, err := stamp.Check(r.Value, topic, stamp.AnyPartition)
				w.t.Errorf("%s: got message %s %.60q (%v), want %.60q", topic, r.StringID, r.Value, err, want)
			}
			delete(w.undelivered[topic], r.StringID)
			ids = append(ids, r.ID)
		}
		w.ok(sub.Ack(w.t.Context(), ids...))
		n -= len(received)
	}
}

// check checks that a server, or a member, has all data, and consumes some more messages.
func (w *expectations) check(at serverAddress, some int) {
	w.t.Helper()
	for name, token := range map[string]string{"operator": w.admin, "API key": w.key, "account": w.token(at)} {
		path := cloud + "serviceaccounts/robot"
		if name == "account" { // its token has the cluster as audience
			path = "/admin/v2/persistent/public/default"
		}
		if status, content := w.call(at, token, http.MethodGet, path, ""); status != http.StatusOK &&
			status != http.StatusForbidden {
			w.t.Errorf("%s: got %d %s, want an accepted token", name, status, content)
		}
	}
	if status, _ := w.call(at, w.revoked, http.MethodGet, cloud+"serviceaccounts/robot",
		""); status != http.StatusUnauthorized {
		w.t.Errorf("revoked key: got %d, want 401", status)
	}
	if got := w.must(at, http.MethodGet, cloud+"serviceaccounts/robot",
		"")["metadata"].(map[string]any)["uid"]; got != w.account {
		w.t.Errorf("account: got uid %v, want %s", got, w.account)
	}
	for version, id := range w.schemas {
		if got := w.must(at, http.MethodGet, fmt.Sprintf("/subjects/orders-value/versions/%d", version),
			"")["id"]; got != float64(id) {
			w.t.Errorf("version %d of a schema: got id %v, want %d", version, got, id)
		}
	}
	c := w.client(at)
	for _, topic := range slices.Sorted(maps.Keys(w.undelivered)) {
		stats, err := c.Topic(topic).Subscription(subscription).Stats(w.t.Context())
		w.ok(err)
		if int(stats.Backlog) != len(w.undelivered[topic]) {
			w.t.Errorf("%s: got %d messages to deliver, want %d", topic, stats.Backlog, len(w.undelivered[topic]))
		}
		w.consume(c, topic, some)
		last := perTopic - 1
		again, err := c.Topic(topic).Produce(w.t.Context(), client.Message{
			Key: fmt.Sprint(last % 5), Value: stamp.Make(topic, "fill", last, 200),
			IdempotencyKey: fmt.Sprintf("%s/%d", topic, last),
		})
		if err != nil || again.StringID != w.produced[topic] {
			w.t.Errorf("%s: repeated produce: got %s %v, want the first id %s", topic, again.StringID, err,
				w.produced[topic])
		}
	}
	w.checkKafka(at)
}

// token requests a token with the original secret of the operator's service account.
func (w *expectations) token(at serverAddress) string {
	w.t.Helper()
	status, content := w.call(at, "", http.MethodPost, "/oauth/token",
		fmt.Sprintf(`{"grant_type":"client_credentials","client_id":%q,"client_secret":%q,"audience":%q}`, w.clientID,
			w.clientSecret, identity.InstanceAudience("default", "default")))
	var out struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal(content, &out); status != http.StatusOK || err != nil {
		w.t.Errorf("requesting a token: got %d %s", status, content)
	}
	return out.Token
}

func (w *expectations) checkKafka(at serverAddress) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	topics := slices.Collect(maps.Keys(kafkaTopics))
	k := w.kafka(at, kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxBytes(1<<20), kgo.FetchMaxPartitionBytes(250<<10))
	defer k.Close()
	got := map[string]string{}
	var count stamp.Count
	for len(got) < len(w.records) && ctx.Err() == nil {
		k.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			_, err := stamp.Check(r.Value, r.Topic, r.Partition)
			count.Add(err)
			got[recordID(r)] = string(r.Value)
		})
	}
	if count != (stamp.Count{}) {
		w.t.Errorf("Kafka records: got %d foreign and %d damaged, want none", count.Foreign, count.Damaged)
	}
	if !maps.Equal(got, w.records) {
		w.t.Errorf("Kafka records: got %d, want the original %d", len(got), len(w.records))
	}
	found, err := kadm.NewClient(k).FetchOffsets(ctx, readers)
	w.ok(err)
	for partition, want := range w.offsets {
		if o, ok := found.Lookup(committedTopic, partition); !ok || o.At != want {
			w.t.Errorf("consumer group at partition %d: got %v, want %d", partition, o.At, want)
		}
	}
}
