package kafkaapi_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/records"
)

// oneRecord returns a batch with one record of the year 2023.
func oneRecord(value string) []byte {
	b := records.NewBuilder(nil, 0)
	b.Add(&records.Record{Time: 1700000000000, Value: []byte(value)})
	return b.Finish()
}

// TestAppendTimeBitIsCleared checks that a producer cannot declare its batch's timestamps to be
// append times on a topic whose records keep their own.
func TestAppendTimeBitIsCleared(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	batch := oneRecord("v")
	records.StampAppendTime(batch, 1800000000000)
	produce := kmsg.NewPtrProduceRequest()
	produce.Version, produce.Acks, produce.TimeoutMillis = 12, -1, 10_000
	row := kmsg.NewProduceRequestTopic()
	row.Topic, row.Partitions = "a", []kmsg.ProduceRequestTopicPartition{{Records: batch}}
	produce.Topics = append(produce.Topics, row)
	if got := roundTrip[*kmsg.ProduceResponse](wire, produce).Topics[0].Partitions[0]; got.ErrorCode != 0 {
		t.Fatalf("got %+v, want success", got)
	}
	fetched := roundTrip[*kmsg.FetchResponse](wire, fetchFrom(0, -1, map[string][]int64{"a": {0}}))
	stored := fetched.Topics[0].Partitions[0].RecordBatches
	head, err := records.ReadBatchHeader(stored)
	if err != nil || head.AppendTime() || head.MaxTime != 1700000000000 {
		t.Errorf("got %+v, %v; want the record's own time", head, err)
	}
}

// TestTooManyRecords checks that a batch with too many records gets the code after which the Java
// client splits the batch.
func TestTooManyRecords(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	b := records.NewBuilder(nil, 0)
	for i := range records.MaxRecords + 1 {
		b.Add(&records.Record{Delta: int32(i), Time: 1700000000000})
	}
	produce := kmsg.NewPtrProduceRequest()
	produce.Version, produce.Acks, produce.TimeoutMillis = 12, -1, 10_000
	row := kmsg.NewProduceRequestTopic()
	row.Topic, row.Partitions = "a", []kmsg.ProduceRequestTopicPartition{{Records: b.Finish()}}
	produce.Topics = append(produce.Topics, row)
	got := roundTrip[*kmsg.ProduceResponse](wire, produce).Topics[0].Partitions[0]
	if got.ErrorCode != kerr.MessageTooLarge.Code || got.ErrorMessage == nil ||
		!strings.Contains(*got.ErrorMessage, "250001 records") {
		t.Errorf("got %+v, want code %d and the number of records", got, kerr.MessageTooLarge.Code)
	}
}

// TestInitProducerIDOfAnother checks that a producer id and its epoch are sent together.
func TestInitProducerIDOfAnother(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	for _, c := range []struct {
		name        string
		id          int64
		epoch       int16
		transaction *string
		want        int16
	}{
		{"new", -1, -1, nil, 0},
		{"both", 7, 3, nil, 0},
		{"id alone", 7, -1, nil, kerr.InvalidRequest.Code},
		{"epoch alone", -1, 3, nil, kerr.InvalidRequest.Code},
		{"empty transactional id", -1, -1, str(""), kerr.InvalidRequest.Code},
	} {
		r := kmsg.NewPtrInitProducerIDRequest()
		r.Version, r.ProducerID, r.ProducerEpoch, r.TransactionalID = 4, c.id, c.epoch, c.transaction
		got := roundTrip[*kmsg.InitProducerIDResponse](wire, r)
		if got.ErrorCode != c.want || (got.ProducerID >= 0) != (c.want == 0) {
			t.Errorf("%s: got %+v, want code %d", c.name, got, c.want)
		}
	}
}

// TestTransactionalIDIsRefused checks that clients get an error that names the reason and that they
// do not retry. librdkafka stops only after the code for a missing permission, and shows our text.
func TestTransactionalIDIsRefused(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for software, want := range map[string]int16{
		"apache-kafka-java": kerr.UnsupportedVersion.Code, "kgo": kerr.UnsupportedVersion.Code,
		"":                      kerr.TransactionalIDAuthorizationFailed.Code, // old librdkafka
		"librdkafka":            kerr.TransactionalIDAuthorizationFailed.Code,
		"confluent-kafka-go":    kerr.TransactionalIDAuthorizationFailed.Code,
		"confluent-kafka-js-x1": kerr.TransactionalIDAuthorizationFailed.Code,
	} {
		wire := w.wire(w.token)
		if software != "" {
			versions := kmsg.NewPtrApiVersionsRequest()
			versions.Version, versions.ClientSoftwareName, versions.ClientSoftwareVersion = 3, software, "1"
			roundTrip[*kmsg.ApiVersionsResponse](wire, versions)
		}
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorType, find.CoordinatorKeys = 4, 1, []string{"tx"}
		got := roundTrip[*kmsg.FindCoordinatorResponse](wire, find).Coordinators[0]
		if got.ErrorCode != want || got.ErrorMessage == nil ||
			*got.ErrorMessage != "transactions are not available on this cluster" {
			t.Errorf("%q: FindCoordinator: got %+v, want code %d and the reason", software, got, want)
		}
		start := kmsg.NewPtrInitProducerIDRequest()
		start.Version, start.TransactionalID = 4, str("tx")
		if got := roundTrip[*kmsg.InitProducerIDResponse](wire, start); got.ErrorCode != want {
			t.Errorf("%q: InitProducerId: got code %d, want %d", software, got.ErrorCode, want)
		}
	}
}
