package kafkadiff

import (
	"fmt"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// recordTime is the timestamp of the records that the test produces: now, because Kafka
// rejects records of the future and deletes old ones.
var recordTime = time.Now().Add(-time.Minute).UnixMilli()

// batch is a record batch to produce. Its zero fields are those of a batch without a producer id.
type batch struct {
	values     []string
	keys       []string // of the records; "" is null
	attributes int16
	time       int64 // 0 means recordTime
	producer   *producer
	sequence   int32
	edit       func(*kmsg.RecordBatch)
	damage     func([]byte)
}

type producer struct {
	id    int64
	epoch int16
}

// bytes encodes the batch.
func (b *batch) bytes() []byte {
	at := b.time
	if at == 0 {
		at = recordTime
	}
	var rows []byte
	for i, value := range b.values {
		record := kmsg.Record{OffsetDelta: int32(i), TimestampDelta64: int64(i), Value: []byte(value)}
		if i < len(b.keys) && b.keys[i] != "" {
			record.Key = []byte(b.keys[i])
		}
		record.Length = int32(len(record.AppendTo(nil)) - 1) // the length itself takes one byte
		rows = record.AppendTo(rows)
	}
	out := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: b.attributes, LastOffsetDelta: int32(len(b.values)) - 1,
		FirstTimestamp: at, MaxTimestamp: at + int64(len(b.values)) - 1, ProducerID: -1, ProducerEpoch: -1,
		FirstSequence: -1, NumRecords: int32(len(b.values)), Records: rows,
	}
	if b.producer != nil {
		out.ProducerID, out.ProducerEpoch, out.FirstSequence = b.producer.id, b.producer.epoch, b.sequence
	}
	if b.edit != nil {
		b.edit(&out)
	}
	raw := out.AppendTo(nil)
	out.Length = int32(len(raw) - 12)
	raw = out.AppendTo(nil)
	sum := crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli))
	copy(raw[17:], kbin.AppendInt32(nil, int32(sum)))
	if b.damage != nil {
		b.damage(raw)
	}
	return raw
}

// produce returns a request with one batch for a partition.
func (s *script) produce(label string, id [16]byte, partition int32, records []byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis = -1, 10_000
	row := kmsg.NewProduceRequestTopic()
	row.Topic, row.TopicID = s.nameOf(label), id
	row.Partitions = []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: records}}
	r.Topics = append(r.Topics, row)
	return r
}

func recordCases() []conversation {
	return []conversation{
		{name: "produce", key: keyProduce, min: 3, run: produce},
		{name: "produce invalid batches", key: keyProduce, min: 3, run: produceInvalid},
		{name: "produce idempotent", key: keyProduce, min: 3, run: produceIdempotent},
		{name: "init producer id", key: keyInitProducerID, run: initProducerID},
		{name: "fetch", key: keyFetch, run: fetch},
		{name: "fetch limits", key: keyFetch, run: fetchLimits},
		{name: "fetch epochs", key: keyFetch, min: 9, run: fetchEpochs},
		{name: "fetch sessions", key: keyFetch, min: 7, run: fetchSessions},
		{name: "list offsets", key: keyListOffsets, run: listOffsets},
		{name: "leader epochs", key: keyOffsetForLeaderEpoch, run: leaderEpochs},
		{name: "delete records", key: keyDeleteRecords, run: deleteRecords},
		{name: "describe producers", key: keyDescribeProducers, run: describeProducers},
	}
}

func produce(s *script) {
	_, id := s.topic("a", 2)
	_, stamped := s.topic("stamped", 1, "message.timestamp.type", "LogAppendTime")
	one := &batch{values: []string{"one"}}
	s.send("one", s.produce("a", id, 0, one.bytes()))
	three := &batch{values: []string{"x", "y", "z"}, keys: []string{"k"}}
	s.send("three", s.produce("a", id, 0, three.bytes()))
	s.send("unknown partition", s.produce("a", id, 9, one.bytes()))
	s.send("negative partition", s.produce("a", id, -1, one.bytes()))
	s.send("unknown topic", s.produce("unknown", bogusID, 0, one.bytes()))
	acks := s.produce("a", id, 0, one.bytes())
	acks.Acks = 2
	s.send("acks 2", acks)
	leader := s.produce("a", id, 0, one.bytes())
	leader.Acks = 1
	s.send("acks 1", leader)
	s.send("append time", s.produce("stamped", stamped, 0, one.bytes()))
	s.send("append time bit", s.produce("a", id, 1, (&batch{values: []string{"v"}, attributes: 1 << 3}).bytes()))
	none := kmsg.NewPtrProduceRequest()
	none.Acks, none.TimeoutMillis = -1, 1000
	s.send("nothing", none)
	s.send("stored", s.fetch("a", id, 0, 0))
	s.send("stored with the bit", s.fetch("a", id, 1, 0))
	s.send("stored with append time", s.fetch("stamped", stamped, 0, 0))
}

func produceInvalid(s *script) {
	_, id := s.topic("a", 1)
	_, compact := s.topic("compact", 1, "cleanup.policy", "compact")
	_, small := s.topic("small", 1, "max.message.bytes", "100")
	for _, c := range []struct {
		name string
		batch
	}{
		{"checksum", batch{values: []string{"a"}, damage: func(b []byte) { b[len(b)-1] ^= 1 }}},
		{"magic 1", batch{values: []string{"a"}, damage: func(b []byte) { b[16] = 1 }}},
		{"magic 9", batch{values: []string{"a"}, damage: func(b []byte) { b[16] = 9 }}},
		{"length", batch{values: []string{"a"}, damage: func(b []byte) { b[11]++ }}},
		{"control bit", batch{values: []string{"a"}, attributes: 1 << 5}},
		{"transactional bit", batch{values: []string{"a"}, attributes: 1 << 4}},
		{"no records", batch{}},
		{"codec 7", batch{values: []string{"a"}, attributes: 7}},
		{"not gzip", batch{values: []string{"a"}, attributes: 1}},
		{"count", batch{values: []string{"a"}, edit: func(b *kmsg.RecordBatch) { b.NumRecords = 2 }}},
		{"last delta", batch{values: []string{"a"}, edit: func(b *kmsg.RecordBatch) { b.LastOffsetDelta = 4 }}},
		{"future", batch{values: []string{"a"}, time: recordTime + 7_200_000}},
		{"no time", batch{values: []string{"a"}, time: -1}},
		{"sequence without producer", batch{
			values: []string{"a"},
			edit:   func(b *kmsg.RecordBatch) { b.FirstSequence = 3 },
		}},
		{"producer without sequence", batch{
			values: []string{"a"},
			edit:   func(b *kmsg.RecordBatch) { b.ProducerID, b.ProducerEpoch = 1, 0 },
		}},
		{"negative time", batch{values: []string{"a"}, time: -5}},
	} {
		s.send(c.name, s.produce("a", id, 0, c.bytes()))
	}
	s.send("empty", s.produce("a", id, 0, []byte{})) // Kafka never responds to null
	s.send("short", s.produce("a", id, 0, []byte("abc")))
	valid := &batch{values: []string{"a"}}
	s.send("two batches", s.produce("a", id, 0, append(valid.bytes(), valid.bytes()...)))
	s.send("null key", s.produce("compact", compact, 0, valid.bytes()))
	s.send("too large", s.produce("small", small, 0, (&batch{values: []string{long(200)}}).bytes()))
	transaction := s.produce("a", id, 0, valid.bytes())
	transaction.TransactionID = text(s.nameOf("tx"))
	s.send("transactional id", transaction)
}

// producerID returns a new producer id.
func (s *script) producerID() *producer {
	response, _ := s.do(kmsg.NewPtrInitProducerIDRequest()).(*kmsg.InitProducerIDResponse)
	return &producer{id: response.ProducerID, epoch: response.ProducerEpoch}
}

func produceIdempotent(s *script) {
	_, id := s.topic("a", 1)
	p := s.producerID()
	send := func(name string, sequence int32, epoch int16, values ...string) {
		b := &batch{values: values, producer: &producer{p.id, epoch}, sequence: sequence}
		s.send(name, s.produce("a", id, 0, b.bytes()))
	}
	send("first", 0, 0, "a", "b")
	send("duplicate", 0, 0, "a", "b")
	send("gap", 5, 0, "c")
	send("next", 2, 0, "c")
	send("part of a duplicate", 0, 0, "a")
	send("overlap", 1, 0, "b", "c")
	send("negative epoch", 3, -2, "c")
}

func initProducerID(s *script) {
	initial := func(id int64, epoch int16, transaction *string) *kmsg.InitProducerIDRequest {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.ProducerID, r.ProducerEpoch, r.TransactionalID, r.TransactionTimeoutMillis = id, epoch, transaction, 60_000
		return r
	}
	s.send("new", initial(-1, -1, nil))
	s.send("empty transactional id", initial(-1, -1, text("")))
	if s.version < 3 {
		return
	}
	s.send("id without epoch", initial(7, -1, nil))
	s.send("epoch without id", initial(-1, 3, nil))
	s.send("id and epoch", initial(7, 3, nil))
}

// fetch returns a request for a partition from an offset on.
func (s *script) fetch(label string, id [16]byte, partition int32, offset int64) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.ReplicaID, r.MaxBytes, r.SessionID, r.SessionEpoch = -1, 1<<20, 0, -1
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = partition, offset, 1<<20
	part.CurrentLeaderEpoch, part.LastFetchedEpoch, part.LogStartOffset = -1, -1, -1
	row := kmsg.NewFetchRequestTopic()
	row.Topic, row.TopicID = s.nameOf(label), id
	row.Partitions = append(row.Partitions, part)
	r.Topics = append(r.Topics, row)
	return r
}

// filled creates a topic with two partitions of two batches each.
func (s *script) filled(label string) [16]byte {
	_, id := s.topic(label, 2)
	for partition := range int32(2) {
		for _, values := range [][]string{{"a", "b", "c"}, {"d"}} {
			s.do(s.produce(label, id, partition, (&batch{values: values}).bytes()))
		}
	}
	return id
}

func fetch(s *script) {
	id := s.filled("a")
	s.send("start", s.fetch("a", id, 0, 0))
	s.send("inside a batch", s.fetch("a", id, 0, 1))
	s.send("end", s.fetch("a", id, 0, 4))
	s.send("beyond the end", s.fetch("a", id, 0, 5))
	s.send("negative", s.fetch("a", id, 0, -1))
	s.send("unknown partition", s.fetch("a", id, 7, 0))
	s.send("unknown topic", s.fetch("unknown", bogusID, 0, 0))
	committed := s.fetch("a", id, 0, 0)
	committed.IsolationLevel = 1
	s.send("committed", committed)
	committed.IsolationLevel = 7
	s.send("isolation level 7", committed)
	both := s.fetch("a", id, 0, 0)
	both.Topics[0].Partitions = append(both.Topics[0].Partitions, s.fetch("a", id, 1, 3).Topics[0].Partitions...)
	s.send("two partitions", both)
	repeated := s.fetch("a", id, 0, 0)
	repeated.Topics[0].Partitions = append(repeated.Topics[0].Partitions,
		s.fetch("a", id, 0, 3).Topics[0].Partitions...)
	s.send("partition twice", repeated)
	nothing := s.fetch("a", id, 0, 0)
	nothing.Topics = nil
	s.send("nothing", nothing)
	zero := s.fetch("a", [16]byte{}, 0, 0)
	if s.version >= 13 {
		s.send("no id", zero)
	}
}

func fetchLimits(s *script) {
	id := s.filled("a")
	for _, limit := range []int32{-1, 0, 1, 75, 90} {
		r := s.fetch("a", id, 0, 0)
		r.MaxBytes = limit
		r.Topics[0].Partitions = append(r.Topics[0].Partitions, s.fetch("a", id, 1, 0).Topics[0].Partitions...)
		s.send(fmt.Sprint("bytes ", limit), r)
		r = s.fetch("a", id, 0, 0)
		r.Topics[0].Partitions[0].PartitionMaxBytes = limit
		s.send(fmt.Sprint("partition bytes ", limit), r)
	}
	wait := s.fetch("a", id, 0, 4)
	wait.MinBytes, wait.MaxWaitMillis = 1, 50
	s.send("wait", wait)
	negative := s.fetch("a", id, 0, 0)
	negative.MinBytes, negative.MaxWaitMillis = -1, -1
	s.send("negative wait", negative)
}

func fetchEpochs(s *script) {
	id := s.filled("a")
	for _, epoch := range []int32{0, 1, -2} {
		r := s.fetch("a", id, 0, 0)
		r.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
		s.send(fmt.Sprint("leader epoch ", epoch), r)
	}
	if s.version < 12 {
		return
	}
	for _, c := range []struct {
		name   string
		epoch  int32
		offset int64
	}{
		{"0 at the start", 0, 0},
		{"0 at the end", 0, 4},
		{"7 at the start", 7, 0},
		{"7 at the end", 7, 4},
		{"-2", -2, 2},
		{"0 beyond the end", 0, 9},
		{"7 beyond the end", 7, 9},
	} {
		r := s.fetch("a", id, 0, c.offset)
		r.Topics[0].Partitions[0].LastFetchedEpoch = c.epoch
		s.send("last epoch "+c.name, r)
	}
}

func fetchSessions(s *script) {
	id := s.filled("a")
	first := s.fetch("a", id, 0, 0)
	first.SessionEpoch = 0
	opened, _ := s.send("open", first).(*kmsg.FetchResponse)
	next := func(epoch int32) *kmsg.FetchRequest {
		r := s.fetch("a", id, 0, 0)
		r.SessionID, r.SessionEpoch, r.Topics = opened.SessionID, epoch, nil
		return r
	}
	s.send("wrong epoch", next(5))
	s.send("next", next(1))
	moved := next(2)
	moved.Topics = s.fetch("a", id, 0, 4).Topics
	s.send("moved", moved)
	s.send("unchanged", next(3))
	added := next(4)
	added.Topics = s.fetch("a", id, 1, 0).Topics
	s.send("added", added)
	forget := next(5)
	forget.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{
		{Topic: s.nameOf("a"), TopicID: id, Partitions: []int32{1}},
	}
	s.send("forgotten", forget)
	s.send("closed", next(-1))
	s.send("after the end", next(6))
	other := next(1)
	other.SessionID = 12345
	s.send("unknown session", other)
	zero := next(1)
	zero.SessionID = 0
	s.send("session 0 in epoch 1", zero)
}

func listOffsets(s *script) {
	s.filled("a")
	list := func(name string, partition int32, at int64, epoch int32) *kmsg.ListOffsetsRequest {
		r := kmsg.NewPtrListOffsetsRequest()
		r.ReplicaID = -1
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp, part.CurrentLeaderEpoch = partition, at, epoch
		row := kmsg.NewListOffsetsRequestTopic()
		row.Topic = s.nameOf(name)
		row.Partitions = append(row.Partitions, part)
		r.Topics = append(r.Topics, row)
		r.TimeoutMillis = 1000
		return r
	}
	for _, c := range []struct {
		name string
		at   int64
	}{
		{"end", -1},
		{"start", -2},
		{"largest", -3},
		{"local start", -4},
		{"tiered", -5},
		{"below -5", -6},
		{"far below", -100},
		{"zero", 0},
		{"a record", recordTime + 1},
		{"later", recordTime + 100_000_000},
	} {
		r := list("a", 0, c.at, -1)
		response, _ := s.send(c.name, r).(*kmsg.ListOffsetsResponse)
		s.relativeTime(response)
	}
	s.send("unknown partition", list("a", 9, -1, -1))
	s.send("unknown topic", list("unknown", 0, -1, -1))
	twice := list("a", 0, -1, -1)
	twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, twice.Topics[0].Partitions[0])
	s.send("twice", twice)
	committed := list("a", 0, -1, -1)
	committed.IsolationLevel = 1
	s.send("committed", committed)
	if s.version >= 4 {
		s.send("epoch 0", list("a", 0, -1, 0))
		s.send("epoch 1", list("a", 0, -1, 1))
	}
}

// relativeTime makes the timestamp of the last response comparable.
func (s *script) relativeTime(response *kmsg.ListOffsetsResponse) {
	if response == nil || len(response.Topics) == 0 {
		return
	}
	p := &response.Topics[0].Partitions[0]
	if p.Timestamp >= 0 {
		p.Timestamp -= recordTime
	}
	s.steps[len(s.steps)-1].answer = s.n.normalise(response)
}

func leaderEpochs(s *script) {
	s.filled("a")
	ask := func(name string, partition, current, epoch int32) *kmsg.OffsetForLeaderEpochRequest {
		r := kmsg.NewPtrOffsetForLeaderEpochRequest()
		r.ReplicaID = -1
		part := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		part.Partition, part.CurrentLeaderEpoch, part.LeaderEpoch = partition, current, epoch
		row := kmsg.NewOffsetForLeaderEpochRequestTopic()
		row.Topic = s.nameOf(name)
		row.Partitions = append(row.Partitions, part)
		r.Topics = append(r.Topics, row)
		return r
	}
	s.send("epoch 0", ask("a", 0, -1, 0))
	s.send("epoch 1", ask("a", 0, -1, 1))
	s.send("epoch -1", ask("a", 0, -1, -1))
	s.send("current epoch 0", ask("a", 0, 0, 0))
	s.send("current epoch 1", ask("a", 0, 1, 0))
	s.send("unknown partition", ask("a", 9, -1, 0))
	s.send("unknown partition, wrong epoch", ask("a", 9, 1, 5))
	s.send("unknown partition, epoch 5", ask("a", 9, -1, 5))
	s.send("unknown topic", ask("unknown", 0, -1, 0))
}

func deleteRecords(s *script) {
	id := s.filled("a")
	remove := func(name string, partition int32, offset int64) *kmsg.DeleteRecordsRequest {
		r := kmsg.NewPtrDeleteRecordsRequest()
		r.TimeoutMillis = 10_000
		row := kmsg.NewDeleteRecordsRequestTopic()
		row.Topic = s.nameOf(name)
		row.Partitions = []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}
		r.Topics = append(r.Topics, row)
		return r
	}
	s.send("inside a batch", remove("a", 0, 2))
	s.send("backwards", remove("a", 0, 1))
	s.send("beyond the end", remove("a", 0, 9))
	s.send("negative", remove("a", 0, -2))
	s.send("all", remove("a", 1, -1))
	s.send("unknown partition", remove("a", 9, 0))
	s.send("unknown topic", remove("unknown", 0, 0))
	s.send("produce", s.produce("a", id, 0, (&batch{values: []string{"e"}}).bytes()))
	s.send("fetch below", s.fetch("a", id, 0, 1))
	s.send("fetch from the start", s.fetch("a", id, 0, 2))
	s.topic("compact", 1, "cleanup.policy", "compact")
	s.send("compacted", remove("compact", 0, 0))
	s.topic("kept", 1, "cleanup.policy", "")
	s.send("no cleanup policy", remove("kept", 0, 0))
}

func describeProducers(s *script) {
	name, id := s.topic("a", 2)
	p := s.producerID()
	b := &batch{values: []string{"a", "b"}, producer: p}
	s.do(s.produce("a", id, 0, b.bytes()))
	r := kmsg.NewPtrDescribeProducersRequest()
	r.Topics = []kmsg.DescribeProducersRequestTopic{
		{Topic: name, Partitions: []int32{0, 1, 9}}, {Topic: s.nameOf("unknown"), Partitions: []int32{0}},
	}
	s.send("describe", r)
}
