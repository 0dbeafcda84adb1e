package kafkaapi_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/records"
)

func oneRecord(value string) []byte {
	b := records.NewBuilder(nil, 0)
	b.Add(&records.Record{Time: 1700000000000, Value: []byte(value)})
	return b.Finish()
}

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
