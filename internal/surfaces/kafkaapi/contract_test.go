package kafkaapi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/records"
)

// TestContracts sets the contract of a topic with a Kafka client, and produces batches that keep and that
// break it.
func TestContracts(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ctx := short(t)
	client := w.client(kgo.DefaultProduceTopic("orders"), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	admin := kadm.NewClient(client)
	contract := "payload.total >= 0"
	_, err := admin.CreateTopic(ctx, 1, 1, map[string]*string{"freshet.require": &contract}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	described, err := admin.DescribeTopicConfigs(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, c := range described[0].Configs {
		if c.Key == "freshet.require" {
			found = *c.Value + " " + c.Source.String()
		}
	}
	if found != contract+" DYNAMIC_TOPIC_CONFIG" {
		t.Errorf("described as %q", found)
	}
	produce := func(values ...string) error {
		t.Helper()
		var list []*kgo.Record
		for _, value := range values {
			list = append(list, kgo.StringRecord(value))
		}
		return client.ProduceSync(ctx, list...).FirstErr()
	}
	if err := produce(`{"total":1}`, `{"total":2}`); err != nil {
		t.Errorf("records that keep the contract: %v", err)
	}
	if err := produce(`{"total":3}`, `{"total":-4}`); !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("a record that breaks the contract: got %v, want %v", err, kerr.InvalidRecord)
	}
	alter := func(value string) error {
		t.Helper()
		change := []kadm.AlterConfig{{Name: "freshet.require", Value: &value}}
		done, err := admin.AlterTopicConfigs(ctx, change, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if done[0].Err != nil {
			return errors.Join(done[0].Err, errors.New(done[0].ErrMessage))
		}
		return nil
	}
	err = alter("payload.total >")
	if !errors.Is(err, kerr.InvalidConfig) || !strings.Contains(err.Error(), "1:16") {
		t.Errorf("a bad contract: got %v, want %v with the position", err, kerr.InvalidConfig)
	}
	if err := alter(""); err != nil {
		t.Errorf("removing the contract: %v", err)
	}
	if err := produce(`{"total":-5}`); err != nil {
		t.Errorf("without the contract: %v", err)
	}
	ends, err := admin.ListEndOffsets(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if end, _ := ends.Lookup("orders", 0); end.Offset != 3 {
		t.Errorf("got %d stored records, want 3: half of a batch may not be stored", end.Offset)
	}
}

// TestContractErrors checks the response to a batch that breaks a contract: the code, the expression with the
// values, and the records.
func TestContractErrors(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	if err := w.broker.Catalogue.SetContract(t.Context(), publicTopic("a"), "payload.n > 0"); err != nil {
		t.Fatal(err)
	}
	b := records.NewBuilder(nil, 0)
	for i, value := range []string{`{"n":1}`, `{"n":-1}`, `{"m":1}`} {
		b.Add(&records.Record{Delta: int32(i), Time: 1700000000000, Value: []byte(value)}) //nolint:gosec // less than 3
	}
	produce := kmsg.NewPtrProduceRequest()
	produce.Version, produce.Acks, produce.TimeoutMillis = 12, -1, 10_000
	row := kmsg.NewProduceRequestTopic()
	row.Topic, row.Partitions = "a", []kmsg.ProduceRequestTopicPartition{{Records: b.Finish()}}
	produce.Topics = append(produce.Topics, row)
	got := roundTrip[*kmsg.ProduceResponse](w.wire(w.token), produce).Topics[0].Partitions[0]
	const message = "message breaks the contract of its topic: payload.n > 0"
	if got.ErrorCode != kerr.InvalidRecord.Code || got.ErrorMessage == nil ||
		*got.ErrorMessage != "record 1: "+message+" is false; payload.n is -1" {
		t.Errorf("got %+v, want code 87 with the expression and its values", got)
	}
	if len(got.ErrorRecords) != 2 || got.ErrorRecords[0].RelativeOffset != 1 ||
		got.ErrorRecords[1].RelativeOffset != 2 ||
		*got.ErrorRecords[0].ErrorMessage != message+" is false; payload.n is -1" ||
		!strings.HasPrefix(*got.ErrorRecords[1].ErrorMessage, message+" fails: no such key: n") {
		t.Errorf("got the records %+v", got.ErrorRecords)
	}
}
