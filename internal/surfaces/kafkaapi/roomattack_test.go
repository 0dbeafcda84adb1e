package kafkaapi_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/identity"
	"freshet/internal/surfaces/kafkaapi"
	"freshet/test/tally"
)

// manyOrganizations serves the cluster of a harness to every organization, as its own.
type manyOrganizations struct{ kafkaapi.Clusters }

// Named implements kafkaapi.Clusters.
func (m manyOrganizations) Named(org, _ string) (*kafkaapi.Cluster, error) {
	cluster, err := m.Default()
	if err != nil {
		return nil, err
	}
	own := *cluster
	own.Organization, own.Scope.Organization = org, org
	own.Audiences = []string{identity.InstanceAudience(org, instance)}
	return &own, nil
}

// newSharedHarness returns a server with little memory for several organizations.
func newSharedHarness(t *testing.T, memory int64, frame int) *harness {
	t.Helper()
	return newHarness(t, func(o *kafkaapi.Options) {
		o.Clusters = manyOrganizations{o.Clusters}
		o.Limits.Memory, o.Limits.MaxFrame = memory, frame
	})
}

// member connects as a principal of an organization, which may do everything there.
func (w *harness) member(org, name string) *rawClient {
	w.Helper()
	account, known := w.identity.Directory.Account(org, name)
	if !known {
		account, _ = w.identity.Account(org, name, func(a *identity.Account) { a.Admin = true })
	}
	r := &rawClient{harness: w, responses: make(map[int16]int)}
	r.dial(w.address)
	got, err := r.authenticate("PLAIN", "\x00@"+org+"/prod\x00"+
		w.identity.Token(account, identity.InstanceAudience(org, instance)))
	if err != nil || got.ErrorCode != 0 {
		w.Fatalf("authenticating %s of %s: got %+v, %v", name, org, got, err)
	}
	return r
}

// produceOf returns a Produce request with a batch of this size for a topic.
func produceOf(topic string, sizes ...int) *kmsg.ProduceRequest {
	request := kmsg.NewPtrProduceRequest()
	request.Version, request.Acks, request.TimeoutMillis = 9, -1, 10_000
	row := kmsg.NewProduceRequestTopic()
	row.Topic = topic
	for i, size := range sizes {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = int32(i), make([]byte, size)
		row.Partitions = append(row.Partitions, part)
	}
	request.Topics = append(request.Topics, row)
	return request
}

func requestFrame(request kmsg.Request) []byte {
	return kmsg.NewRequestFormatter().AppendRequest(nil, request, 1)
}

// isServed reports whether a large Produce and a Fetch of a client get their responses.
func (r *rawClient) isServed(t *testing.T, who string) bool {
	t.Helper()
	stored, err := r.exchange(produceOf("no-such-topic", 900<<10), nil)
	if err != nil {
		t.Errorf("%s: Produce: got %v, want a response", who, err)
		return false
	}
	p, _ := stored.(*kmsg.ProduceResponse)
	if part := p.Topics[0].Partitions[0]; part.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("%s: Produce: got %+v, want code 3", who, part)
		return false
	}
	read, err := r.exchange(fetchFrom(0, -1, map[string][]int64{"small": {0}}), nil)
	if err != nil {
		t.Errorf("%s: Fetch: got %v, want a response", who, err)
		return false
	}
	if f, _ := read.(*kmsg.FetchResponse); len(f.Topics[0].Partitions[0].RecordBatches) < 200_000 {
		t.Errorf("%s: Fetch: got %d bytes, want the batch", who, len(f.Topics[0].Partitions[0].RecordBatches))
		return false
	}
	return true
}

// countUnserved counts the clients of other organizations that are not served, and of other principals of
// the attacking organization, if it is given. It includes the given clients.
func (w *harness) countUnserved(t *testing.T, attacker string, others ...*rawClient) (unserved int) {
	t.Helper()
	victims := map[string]*rawClient{
		"an organization":      w.member("good", "app"),
		"another organization": w.member("better", "app"),
	}
	if attacker != "" {
		victims["another principal"] = w.member(attacker, "victim")
	}
	for i, r := range others {
		victims[fmt.Sprint("client ", i)] = r
	}
	var mu sync.Mutex
	var calls sync.WaitGroup
	for who, r := range victims {
		calls.Go(func() {
			for range 3 {
				if !r.isServed(t, who) {
					mu.Lock()
					unserved++
					mu.Unlock()
					return
				}
			}
		})
	}
	calls.Wait()
	return unserved
}

func (w *harness) storeSmall() {
	w.Helper()
	w.partitioned("small", 1)
	w.send("small", 0, strings.Repeat("x", 200_000))
}

// awaitMemory waits until requests and responses hold memory.
func (w *harness) awaitMemory(atLeast int64) {
	w.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for over := time.After(20 * time.Second); w.server.Stats().Memory < atLeast; {
		select {
		case <-tick.C:
		case <-over:
			w.Fatalf("requests and responses hold %d bytes, want at least %d", w.server.Stats().Memory, atLeast)
		}
	}
}

// TestAttackAnnouncedFrames announces large requests on many connections, sends a small part of them, and checks
// that other clients can produce and fetch.
func TestAttackAnnouncedFrames(t *testing.T) {
	t.Parallel()
	w := newSharedHarness(t, 256<<20, 100<<20)
	w.storeSmall()
	const announced, sent = 100 << 20, 204 << 10
	attempts := 0
	begin := binary.BigEndian.AppendUint32(nil, announced)
	begin = append(begin, requestFrame(produceOf("no-such-topic", sent))[4:]...)
	for _, principal := range []string{"eve", "eve", "eve", "mallory", "trudy", "oscar"} {
		attempts++
		if _, err := w.member("evil", principal).conn.Write(begin); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitMemory(1 << 20)
	unserved := w.countUnserved(t, "evil", w.member("evil", "eve"), w.member("evil", "oscar"))
	tally.Attack(t, "stream: requests that are announced and not sent", attempts, unserved)
	if got := w.server.Stats().Memory; got > 16<<20 {
		t.Errorf("%d requests of %d bytes hold %d bytes, want little more than was sent", attempts, sent, got)
	}
}

// TestAttackHeldFrames sends large requests but for their last byte, from several organizations, and checks that
// other clients can produce and fetch.
func TestAttackHeldFrames(t *testing.T) {
	t.Parallel()
	const memory = 64 << 20
	w := newSharedHarness(t, memory, 12<<20)
	w.storeSmall()
	frame := requestFrame(produceOf("no-such-topic", 8<<20))
	attempts := 0
	for _, org := range []string{"evil", "bad", "worse", "worst"} {
		for i := range 10 {
			attempts++
			r := w.member(org, fmt.Sprint("p", i%2))
			go func() { _, _ = r.conn.Write(frame[:len(frame)-1]) }()
		}
	}
	w.awaitMemory(memory / 2)
	unserved := w.countUnserved(t, "")
	if got := w.server.Stats().Memory; got > memory {
		t.Errorf("requests hold %d bytes, want at most %d", got, memory)
	}
	tally.Attack(t, "stream: requests without their end", attempts, unserved)
}

// TestAttackUnreadMetadata requests metadata of many invalid names, does not read the responses, and checks
// that other clients can produce and fetch.
func TestAttackUnreadMetadata(t *testing.T) {
	t.Parallel()
	const memory = 256 << 20
	w := newSharedHarness(t, memory, 100<<20)
	w.storeSmall()
	request := kmsg.NewPtrMetadataRequest()
	request.Version = 9
	for i := range 2300 {
		name := fmt.Sprint(strings.Repeat("x", 30_000), i)
		request.Topics = append(request.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	frame := requestFrame(request) // 69 MB
	var sent sync.WaitGroup
	for range 2 {
		r := w.member("evil", "eve")
		sent.Go(func() { _, _ = r.conn.Write(frame) }) // the server may close the connection
	}
	sent.Wait()
	successes := w.countUnserved(t, "evil", w.member("evil", "eve"))
	if got := w.server.Stats().Memory; got > memory {
		successes++
		t.Errorf("requests and responses hold %d bytes, want at most %d", got, memory)
	}
	tally.Attack(t, "stream: unread responses to large requests", 2, successes)
}

// TestAttackUnreadFetches fetches on many connections, does not read the responses, and checks that other
// organizations, and other principals of a single attacking one, can produce and fetch.
func TestAttackUnreadFetches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		organizations []string
		principals    int
		victims       string
	}{
		"one principal":         {[]string{"evil"}, 1, "evil"},
		"several organizations": {[]string{"evil", "bad", "worse", "worst"}, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attackWithUnreadFetches(t, c.organizations, c.principals, c.victims)
		})
	}
}

func attackWithUnreadFetches(t *testing.T, organizations []string, principals int, victims string) {
	t.Helper()
	const memory, batches, each = 48 << 20, 15, 12
	w := newSharedHarness(t, memory, 12<<20)
	w.storeSmall()
	w.partitioned("large", 1)
	producer := w.client(kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DefaultProduceTopic("large"))
	for range batches {
		w.ok(producer.ProduceSync(short(t), &kgo.Record{Value: make([]byte, 900_000)}).FirstErr())
	}
	request := fetchFrom(0, -1, map[string][]int64{"large": {0}})
	request.MaxBytes, request.Topics[0].Partitions[0].PartitionMaxBytes = 55<<20, 55<<20
	frame := requestFrame(request)
	for _, org := range organizations {
		for i := range each {
			r := w.member(org, fmt.Sprint("p", i%principals))
			if tcp, ok := r.conn.(*net.TCPConn); ok {
				_ = tcp.SetReadBuffer(4 << 10)
			}
			if _, err := r.conn.Write(frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.awaitMemory(memory / 4)
	unserved := w.countUnserved(t, victims)
	if got := w.server.Stats().Memory; got > memory {
		t.Errorf("responses hold %d bytes, want at most %d", got, memory)
	}
	tally.Attack(t, "stream: consumers that do not read, "+t.Name(), each*len(organizations), unserved)
}

// TestAttackStalledTransfers stops sending large requests, and stops reading large responses. It checks that the server
// closes the connections and releases their memory.
func TestAttackStalledTransfers(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(o *kafkaapi.Options) { o.Limits.StallTimeout = 300 * time.Millisecond })
	w.partitioned("large", 1)
	for range 15 {
		w.send("large", 0, strings.Repeat("x", 900_000))
	}
	request := fetchFrom(0, -1, map[string][]int64{"large": {0}})
	request.MaxBytes, request.Topics[0].Partitions[0].PartitionMaxBytes = 55<<20, 55<<20
	unfinished := requestFrame(produceOf("large", 5<<20))
	const each = 3
	var senders []*rawClient
	for range each {
		sender, reader := w.wire(w.token), w.wire(w.token)
		go func() { _, _ = sender.conn.Write(unfinished[:4<<20]) }()
		if tcp, ok := reader.conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(4 << 10)
		}
		_, _ = reader.conn.Write(requestFrame(request))
		senders = append(senders, sender)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	successes := 0
	for i, sender := range senders {
		_ = sender.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := sender.in.ReadByte(); err == nil || strings.Contains(err.Error(), "timeout") {
			successes++
			t.Errorf("sender %d: got %v, want the connection closed", i, err)
		}
	}
	for over := time.After(20 * time.Second); w.server.Stats().Memory > 0 && successes == 0; {
		select {
		case <-tick.C:
		case <-over:
			successes++
			t.Errorf("after the transfers have stalled: got %d bytes held, want none", w.server.Stats().Memory)
		}
	}
	tally.Attack(t, "stream: transfers that stop", 2*each, successes)
}

// TestAttackRequestsBehindFetch sends requests behind a Fetch that waits for messages, and checks that they take no
// memory during the wait.
func TestAttackRequestsBehindFetch(t *testing.T) {
	t.Parallel()
	const memory, attempts = 64 << 20, 30
	w := newSharedHarness(t, memory, 12<<20)
	w.storeSmall()
	w.partitioned("empty", 1)
	waits := fetchFrom(0, -1, map[string][]int64{"empty": {0}})
	waits.MinBytes, waits.MaxWaitMillis = 1, 60_000
	frames := append(requestFrame(waits), requestFrame(produceOf("no-such-topic", 1_000_000))...)
	for range attempts {
		if _, err := w.member("evil", "eve").conn.Write(frames); err != nil {
			t.Fatal(err)
		}
	}
	successes := w.countUnserved(t, "evil", w.member("evil", "eve"))
	if got := w.server.Stats().Memory; got > 1<<20 {
		successes++
		t.Errorf("%d requests behind a Fetch hold %d bytes, want none", attempts, got)
	}
	tally.Attack(t, "stream: requests behind a waiting Fetch", attempts, successes)
}

// TestMetadataDoesNotRepeatInvalidNames checks that a name which no topic can have is not repeated, and that shorter
// invalid ones are.
func TestMetadataDoesNotRepeatInvalidNames(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.wire(w.token)
	for version := int16(0); version <= 13; version++ {
		for length, want := range map[int]int{300: 300, 996: 996, 997: 0, 30_000: 0} {
			request := topicsRequest(strings.Repeat("x", length))
			request.Version = version
			got := roundTrip[*kmsg.MetadataResponse](r, request).Topics
			if len(got) != 1 || got[0].ErrorCode != kerr.InvalidTopicException.Code ||
				nameLength(got[0].Topic) != want {
				t.Errorf("version %d, name of %d bytes: got %+v, want code 17 and a name of %d bytes", version, length,
					got, want)
			}
		}
	}
}

func nameLength(name *string) int {
	if name == nil {
		return 0
	}
	return len(*name)
}

// TestAttackOutsiders sends large requests without any permission. It checks that small ones are denied, large ones
// end the connection, and unfinished ones take no memory from others.
func TestAttackOutsiders(t *testing.T) {
	t.Parallel()
	w := newSharedHarness(t, 256<<20, 100<<20)
	w.storeSmall()
	token := w.account("outsider")
	outsider := func() *rawClient { return w.wire(token) }
	denied := roundTrip[*kmsg.ProduceResponse](outsider(), produceOf("small", 900<<10))
	if got := denied.Topics[0].Partitions[0].ErrorCode; got != kerr.TopicAuthorizationFailed.Code {
		t.Errorf("Produce without a permission: got code %d, want %d", got, kerr.TopicAuthorizationFailed.Code)
	}
	successes := 0
	if _, err := outsider().exchange(produceOf("small", 3<<20), nil); err == nil {
		successes++
		t.Error("Produce of 3 MiB without a permission: got a response, want the connection closed")
	}
	const attempts = 40
	frame := requestFrame(produceOf("small", 1<<20))
	for range attempts {
		r := outsider()
		go func() { _, _ = r.conn.Write(frame[:len(frame)-1]) }()
	}
	w.awaitMemory(8 << 20)
	successes += w.countUnserved(t, organization, w.wire(w.token))
	if got := w.server.Stats().Memory; got > 17<<20 {
		successes++
		t.Errorf("requests without a permission hold %d bytes, want at most 16 MiB", got)
	}
	tally.Attack(t, "stream: memory taken without a permission", attempts, successes)
}

// TestOnePrincipalUsesTheMemory checks that the only client may hold more than a third of the memory in requests,
// and that its requests, which are larger than the memory together, all complete.
func TestOnePrincipalUsesTheMemory(t *testing.T) {
	t.Parallel()
	const memory = 64 << 20
	w := newSharedHarness(t, memory, 24<<20)
	var all sync.WaitGroup
	for _, sizes := range [][]int{{8 << 20, 8 << 20, 4 << 20}, {1 << 20}, {2 << 20, 1 << 20}} {
		frame := requestFrame(produceOf("no-such-topic", sizes...))
		for range 4 {
			r := w.member("good", "app")
			_ = r.conn.SetDeadline(time.Now().Add(2 * time.Minute))
			all.Go(func() {
				for range 2 {
					if _, err := r.conn.Write(frame); err != nil {
						t.Error(err)
					}
				}
				for range 2 {
					var head [4]byte
					if _, err := io.ReadFull(r.in, head[:]); err != nil {
						t.Errorf("requests with batches of %v bytes: got %v, want a response", sizes, err)
						return
					}
					_, _ = r.in.Discard(int(binary.BigEndian.Uint32(head[:])))
				}
			})
		}
	}
	all.Wait()
	frame := requestFrame(produceOf("no-such-topic", 900<<10))
	for range 40 {
		r := w.member("good", "app")
		go func() { _, _ = r.conn.Write(frame[:len(frame)-1]) }()
	}
	w.awaitMemory(memory / 3)
}
