package kafkaapi_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/messaging"
	"freshet/internal/broker/records"
)

// TestFetchModel sends random Fetch requests and checks every response against a model of the
// stored data. Every record contains its topic, partition, offset and a checksum. Several clients
// run concurrently, because responses share pooled buffers.
func TestFetchModel(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	seed := rand.Uint64()
	for i := range 4 {
		t.Run(fmt.Sprint("conversation ", i), func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			own := &harness{
				T: t, broker: w.broker, cluster: w.cluster, server: w.server, address: w.address, token: w.token,
			}
			m := &fetchModel{rawClient: own.wire(w.token), random: rand.New(rand.NewPCG(seed, uint64(i)))}
			m.create(fmt.Sprintf("model-%d-", i))
			for m.step = range 400 {
				m.change()
				m.fetch()
				if t.Failed() {
					t.Fatalf("in request %d", m.step)
				}
			}
			t.Logf("%d records, %d batches of more than one part, %d errors, %d requests of sessions", m.records,
				m.large, m.errors, m.inSession)
			if m.records == 0 || m.large == 0 || m.errors == 0 || m.inSession == 0 {
				t.Error("requests did not cover all cases of the test")
			}
		})
	}
}

// fetchModel is one client, a model of the data that it has stored, and its fetch session.
type fetchModel struct {
	*rawClient
	random *rand.Rand
	step   int
	stored map[fetchKey]*storedPartition
	keys   []fetchKey // partitions that requests may name, in a fixed order
	ids    map[string][16]byte

	// The session: its id, the next epoch, the version of its requests, and the partitions that the
	// server has stored. Zero without a session.
	session, epoch    int32
	version           int16
	sessionPartitions map[fetchKey]requestedPartition

	records, large, errors, inSession int
}

// Values that cause errors.
const wrongEpoch = 100

var unknownID = [16]byte{1}

type fetchKey struct {
	topic     string
	partition int32
}

// storedPartition models a partition. Its batches are contiguous.
type storedPartition struct {
	start, end int64
	batches    []storedBatch
}

type storedBatch struct {
	first, end int64
	size       int // 0 for a message that was produced over HTTP
}

// requestedPartition is a partition of a request.
type requestedPartition struct {
	offset      int64
	maxBytes    int32
	leaderEpoch int32

	// State in the last response of the session; known is false before the first response.
	known      bool
	end, start int64
}

// create creates topics with one to five partitions.
func (m *fetchModel) create(prefix string) {
	m.Helper()
	m.stored, m.ids = make(map[fetchKey]*storedPartition), make(map[string][16]byte)
	for i := range int32(5) {
		topic := fmt.Sprint(prefix, i)
		m.partitioned(topic, i+1)
		for partition := range i + 1 {
			key := fetchKey{topic, partition}
			m.stored[key] = &storedPartition{}
			m.keys = append(m.keys, key)
		}
		m.keys = append(m.keys, fetchKey{topic, i + 1}) // this partition does not exist
		topicID := kmsg.NewPtrMetadataRequest()
		topicID.Version, topicID.Topics = 12, []kmsg.MetadataRequestTopic{{Topic: &topic}}
		m.ids[topic] = roundTrip[*kmsg.MetadataResponse](m.rawClient, topicID).Topics[0].TopicID
	}
	m.keys = append(m.keys, fetchKey{prefix + "unknown", 0})
	m.ids[prefix+"unknown"] = unknownID
}

// change stores more records, and sometimes deletes old ones.
func (m *fetchModel) change() {
	m.Helper()
	for range m.random.IntN(3) {
		key := m.keys[m.random.IntN(len(m.keys))]
		p := m.stored[key]
		switch {
		case p == nil:
		case m.random.IntN(20) == 0:
			m.trim(key, p)
		case key.topic == m.keys[0].topic && m.random.IntN(2) == 0: // this topic has one partition
			m.storeMessage(key, p)
		default:
			m.storeBatch(key, p)
		}
	}
}

// content returns the value of a record.
func (m *fetchModel) content(key fetchKey, offset int64, size int) []byte {
	value := fmt.Appendf(nil, "%s/%d/%d/%d/", key.topic, key.partition, offset, m.random.Uint64())
	for len(value) < size {
		value = append(value, byte(m.random.Uint32()))
	}
	return fmt.Appendf(value, "%08x", crc32.ChecksumIEEE(value))
}

func (m *fetchModel) storeBatch(key fetchKey, p *storedPartition) {
	m.Helper()
	count := 1 + m.random.IntN(5)
	size := []int{10, 1000, 20 << 10, 60 << 10, 100 << 10}[m.random.IntN(5)]
	builder := records.NewBuilder(nil, 0)
	for i := range count {
		value := m.content(key, p.end+int64(i), size/2+m.random.IntN(size))
		builder.Add(&records.Record{Delta: int32(i), Time: 1, Value: value})
	}
	batch := builder.Finish()
	request := kmsg.NewPtrProduceRequest()
	request.Version, request.Acks = 9, -1
	request.Topics = []kmsg.ProduceRequestTopic{{
		Topic: key.topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: key.partition, Records: batch}},
	}}
	answer := roundTrip[*kmsg.ProduceResponse](m.rawClient, request).Topics[0].Partitions[0]
	if answer.ErrorCode != 0 || answer.BaseOffset != p.end {
		m.Fatalf("produce to %v: got code %d, offset %d; want offset %d", key, answer.ErrorCode,
			answer.BaseOffset, p.end)
	}
	p.batches = append(p.batches, storedBatch{p.end, p.end + int64(count), len(batch)})
	p.end += int64(count)
}

func (m *fetchModel) storeMessage(key fetchKey, p *storedPartition) {
	m.Helper()
	_, err := m.broker.Producer.Produce(m.Context(), publicTopic(key.topic), &messaging.Message{
		Payload: m.content(key, p.end, m.random.IntN(30<<10)), SchemaVersion: messaging.NoSchema,
	})
	m.ok(err)
	p.batches = append(p.batches, storedBatch{first: p.end, end: p.end + 1})
	p.end++
}

func (m *fetchModel) trim(key fetchKey, p *storedPartition) {
	m.Helper()
	offset := p.start + m.random.Int64N(p.end-p.start+1)
	request := kmsg.NewPtrDeleteRecordsRequest()
	request.TimeoutMillis = 10_000
	request.Topics = []kmsg.DeleteRecordsRequestTopic{{
		Topic: key.topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{
			Partition: key.partition,
			Offset:    offset,
		}},
	}}
	answer := roundTrip[*kmsg.DeleteRecordsResponse](m.rawClient, request).Topics[0].Partitions[0]
	if answer.ErrorCode != 0 || answer.LowWatermark != offset {
		m.Fatalf("delete records of %v: got code %d, offset %d; want offset %d", key, answer.ErrorCode,
			answer.LowWatermark, offset)
	}
	p.start = offset
}

// ask returns a random request for a partition.
func (m *fetchModel) ask(key fetchKey) requestedPartition {
	requested := requestedPartition{
		maxBytes:    int32([]int{0, 1, 5000, 100 << 10, 1 << 20, 1 << 20}[m.random.IntN(6)]),
		leaderEpoch: -1,
	}
	if p := m.stored[key]; p != nil {
		requested.offset = p.start + m.random.Int64N(p.end-p.start+1)
		switch m.random.IntN(25) {
		case 0:
			requested.offset = p.end + 1
		case 1:
			requested.offset = p.start - 1
		case 2:
			requested.leaderEpoch = wrongEpoch
		}
	}
	return requested
}

// fetch sends a request, with or without a session, and checks the response.
func (m *fetchModel) fetch() {
	m.Helper()
	request := kmsg.NewPtrFetchRequest()
	request.MaxBytes = int32([]int{0, 1, 70 << 10, 200 << 10, 1 << 20, 4 << 20}[m.random.IntN(6)])
	request.MinBytes, request.MaxWaitMillis = int32(m.random.IntN(2)), int32(m.random.IntN(2))
	wanted := make(map[fetchKey]requestedPartition)
	going := m.session != 0 && m.random.IntN(8) > 0
	if going {
		m.continueSession(request, wanted)
	} else {
		m.begin(request, wanted)
	}
	if request.Version >= 13 {
		m.byID(request)
	}
	m.maxResponse = 64 << 20
	answer := roundTrip[*kmsg.FetchResponse](m.rawClient, request)
	if answer.ErrorCode != 0 {
		m.Fatalf("got code %d, want a response", answer.ErrorCode)
	}
	if request.Version >= 13 {
		m.byName(answer)
	}
	m.check(request, wanted, answer, going)
	m.updateSession(request, wanted, answer)
}

// begin fills a full request, which starts a session or uses none.
func (m *fetchModel) begin(request *kmsg.FetchRequest, wanted map[fetchKey]requestedPartition) {
	request.Version = int16(4 + m.random.IntN(14))
	request.SessionID, request.SessionEpoch = 0, -1
	if m.random.IntN(3) > 0 {
		request.SessionEpoch = 0
	}
	for range 1 + m.random.IntN(2*len(m.keys)) { // some occur several times
		m.add(request, wanted, m.keys[m.random.IntN(len(m.keys))])
	}
}

// continueSession fills an incremental request of the session.
func (m *fetchModel) continueSession(request *kmsg.FetchRequest, wanted map[fetchKey]requestedPartition) {
	request.Version, request.SessionID, request.SessionEpoch = m.version, m.session, m.epoch
	m.inSession++
	for _, key := range m.keys {
		requested, ok := m.sessionPartitions[key]
		if ok && m.random.IntN(10) == 0 {
			forgotten := kmsg.NewFetchRequestForgottenTopic()
			forgotten.Topic, forgotten.TopicID, forgotten.Partitions = key.topic, m.ids[key.topic],
				[]int32{key.partition}
			request.ForgottenTopics = append(request.ForgottenTopics, forgotten)
			delete(m.sessionPartitions, key)
		} else if ok {
			wanted[key] = requested
		}
	}
	for _, i := range m.random.Perm(len(m.keys))[:m.random.IntN(6)] {
		m.add(request, wanted, m.keys[i])
	}
	if len(wanted) == 0 { // an empty session would end
		m.add(request, wanted, m.keys[0])
	}
}

// add adds a partition to a request, in a new row or in the last one.
func (m *fetchModel) add(request *kmsg.FetchRequest, wanted map[fetchKey]requestedPartition, key fetchKey) {
	requested := m.ask(key)
	before := wanted[key]
	requested.known, requested.end, requested.start = before.known, before.end, before.start
	wanted[key] = requested
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = key.partition, requested.offset,
		requested.maxBytes,
		requested.leaderEpoch
	if n := len(request.Topics); n > 0 && request.Topics[n-1].Topic == key.topic && m.random.IntN(2) > 0 {
		request.Topics[n-1].Partitions = append(request.Topics[n-1].Partitions, p)
		return
	}
	row := kmsg.NewFetchRequestTopic()
	row.Topic, row.Partitions = key.topic, []kmsg.FetchRequestTopicPartition{p}
	request.Topics = append(request.Topics, row)
}

// byID replaces the topic names of a request by ids, for version 13 and later.
func (m *fetchModel) byID(request *kmsg.FetchRequest) {
	for i := range request.Topics {
		request.Topics[i].TopicID = m.ids[request.Topics[i].Topic]
	}
}

// byName replaces the topic ids of a response by names.
func (m *fetchModel) byName(answer *kmsg.FetchResponse) {
	m.Helper()
	for i := range answer.Topics {
		for name, id := range m.ids {
			if id == answer.Topics[i].TopicID {
				answer.Topics[i].Topic = name
			}
		}
		if answer.Topics[i].Topic == "" {
			m.Errorf("got topic id %x, which was not requested", answer.Topics[i].TopicID)
		}
	}
}

// check checks a response against the model.
func (m *fetchModel) check(request *kmsg.FetchRequest, wanted map[fetchKey]requestedPartition,
	answer *kmsg.FetchResponse,
	onlyNews bool,
) {
	m.Helper()
	got := make(map[fetchKey]*kmsg.FetchResponseTopicPartition)
	rows := make(map[string]bool)
	total, filled, first := 0, 0, 0
	for i := range answer.Topics {
		row := &answer.Topics[i]
		if rows[row.Topic] {
			m.Errorf("topic %s has two rows", row.Topic)
		}
		rows[row.Topic] = true
		for j := range row.Partitions {
			p := &row.Partitions[j]
			key := fetchKey{row.Topic, p.Partition}
			requested, ok := wanted[key]
			if got[key] != nil || !ok {
				m.Errorf("%v: got it twice, or it was not requested", key)
				continue
			}
			got[key] = p
			total += len(p.RecordBatches)
			if len(p.RecordBatches) > 0 {
				filled++
			}
			first = max(first, m.checkPartition(key, requested, p, request.Version))
		}
	}
	if limit := int(request.MaxBytes); total > limit && filled > 1 && total-limit > first {
		m.Errorf("got %d bytes in %d partitions, want at most %d and a first batch", total, filled, limit)
	}
	for key, requested := range wanted {
		m.checkAbsent(request, key, requested, got[key], total, onlyNews)
	}
}

// checkPartition checks one partition of a response and returns the size of its first batch.
func (m *fetchModel) checkPartition(key fetchKey, requested requestedPartition, got *kmsg.FetchResponseTopicPartition,
	version int16,
) (first int) {
	m.Helper()
	p := m.stored[key]
	if want := m.code(key, requested, version); got.ErrorCode != want {
		m.Errorf("%v from %d: got code %d, want %d", key, requested.offset, got.ErrorCode, want)
	}
	if got.ErrorCode != 0 {
		m.errors++
		if len(got.RecordBatches) > 0 {
			m.Errorf("%v: got records with code %d, want none", key, got.ErrorCode)
		}
		return 0
	}
	if got.HighWatermark != p.end || got.LastStableOffset != p.end || version >= 5 && got.LogStartOffset != p.start {
		m.Errorf("%v: got offsets %d to %d, want %d to %d", key, got.LogStartOffset, got.HighWatermark, p.start, p.end)
	}
	if len(got.RecordBatches) > 64<<10 {
		m.large++
	}
	next := requested.offset
	for rest := got.RecordBatches; len(rest) > 0; {
		head, err := records.ReadBatchHeader(rest)
		if err != nil {
			m.Errorf("%v: decoding the batch after offset %d: %v", key, next, err)
			return first
		}
		size := head.Size
		if size > len(rest) {
			m.Errorf("%v: batch after offset %d has %d bytes, got %d", key, next, size, len(rest))
			return first
		}
		if first == 0 {
			first = size
		}
		next = m.checkBatch(key, next, rest[:size], &head)
		rest = rest[size:]
	}
	return first
}

// checkBatch checks the records of a batch that begins at or before an offset and returns the
// offset after them.
func (m *fetchModel) checkBatch(key fetchKey, from int64, batch []byte, head *records.BatchHeader) int64 {
	m.Helper()
	if end := head.BaseOffset + int64(head.LastDelta); head.BaseOffset > from || end < from {
		m.Errorf("%v: got offsets %d to %d, want %d next", key, head.BaseOffset, end, from)
	}
	err := records.Walk(batch, nil, func(_ int32, r *records.Record) error {
		m.records++
		offset := head.BaseOffset + int64(r.Delta)
		if want := fmt.Appendf(nil, "%s/%d/%d/", key.topic, key.partition, offset); !bytes.HasPrefix(r.Value, want) {
			return fmt.Errorf("foreign record: got %.60q, want %q", r.Value, want)
		}
		body := r.Value[:max(len(r.Value)-8, 0)]
		if want := fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)); string(r.Value[len(body):]) != want {
			return fmt.Errorf("record at offset %d is damaged", offset)
		}
		return nil
	})
	if err != nil {
		m.Errorf("%v: %v", key, err)
	}
	return head.BaseOffset + int64(head.LastDelta) + 1
}

// code returns the expected error code of a partition.
func (m *fetchModel) code(key fetchKey, requested requestedPartition, version int16) int16 {
	p := m.stored[key]
	switch {
	case p == nil && version >= 13 && m.ids[key.topic] == unknownID:
		return 100
	case p == nil:
		return 3
	case version >= 9 && requested.leaderEpoch == wrongEpoch:
		return 75
	case requested.offset < p.start || requested.offset > p.end:
		return 1
	}
	return 0
}

// checkAbsent checks a partition without records in the response: it has no records, the next batch
// does not fit, or nothing has changed in the session.
func (m *fetchModel) checkAbsent(request *kmsg.FetchRequest, key fetchKey, requested requestedPartition,
	got *kmsg.FetchResponseTopicPartition, total int, onlyNews bool,
) {
	m.Helper()
	p := m.stored[key]
	failed := p == nil || m.code(key, requested, request.Version) != 0
	if got == nil {
		if !onlyNews || failed || !requested.known || requested.end != p.end || requested.start != p.start {
			m.Errorf("%v: got no row in the response, want one", key)
		}
		if failed {
			return
		}
	}
	if failed || got != nil && len(got.RecordBatches) > 0 || requested.offset == p.end {
		return
	}
	i := slices.IndexFunc(p.batches, func(b storedBatch) bool { return b.end > requested.offset })
	budget := int(request.MaxBytes) - total
	switch size := p.batches[i].size; {
	case total == 0:
		m.Errorf("%v from %d to %d: got no records in the whole response, want some", key, requested.offset, p.end)
	case size > 0 && size <= min(budget, int(requested.maxBytes)):
		m.Errorf("%v: got no records, want a batch of %d bytes in %d, at most %d a partition", key, size, budget,
			requested.maxBytes)
	}
}

// updateSession updates the model of the session.
func (m *fetchModel) updateSession(request *kmsg.FetchRequest, wanted map[fetchKey]requestedPartition,
	answer *kmsg.FetchResponse,
) {
	m.Helper()
	switch {
	case request.Version < 7 || request.SessionEpoch == -1:
		if answer.SessionID != 0 {
			m.Errorf("got session %d, want none", answer.SessionID)
		}
		return // an older session of the connection continues
	case request.SessionEpoch == 0:
		if answer.SessionID == 0 {
			m.Error("got no session, want one")
		}
		m.session, m.epoch, m.version = answer.SessionID, 1, request.Version
	default:
		m.epoch++
	}
	m.sessionPartitions = wanted
	for i := range answer.Topics {
		for j := range answer.Topics[i].Partitions {
			p := &answer.Topics[i].Partitions[j]
			key := fetchKey{answer.Topics[i].Topic, p.Partition}
			requested := wanted[key]
			requested.known, requested.end, requested.start = p.ErrorCode == 0, p.HighWatermark, p.LogStartOffset
			wanted[key] = requested
		}
	}
}
