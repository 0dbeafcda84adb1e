package kafkaapi_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// creating returns a request to create topics with two partitions.
func creating(version int16, validateOnly bool, topics ...string) *kmsg.CreateTopicsRequest {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.ValidateOnly, r.TimeoutMillis = version, validateOnly, 10_000
	for _, topic := range topics {
		row := kmsg.NewCreateTopicsRequestTopic()
		row.Topic, row.NumPartitions, row.ReplicationFactor = topic, 2, 1
		row.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "retention.ms", Value: str("1000")}}
		r.Topics = append(r.Topics, row)
	}
	return r
}

// TestValidateOnlyDescribesTheTopic checks that a validated topic is described like a created one,
// and that it is not created.
func TestValidateOnlyDescribesTheTopic(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	got := roundTrip[*kmsg.CreateTopicsResponse](wire, creating(7, true, "a")).Topics[0]
	if got.ErrorCode != 0 || got.NumPartitions != 2 || got.ReplicationFactor != 1 || got.TopicID == [16]byte{} {
		t.Errorf("got %+v, want two partitions, one replica and an id", got)
	}
	value := ""
	for _, config := range got.Configs {
		if config.Name == "retention.ms" {
			value = *config.Value
		}
	}
	if value != "1000" {
		t.Errorf("got retention.ms %q of %d configurations, want 1000", value, len(got.Configs))
	}
	if row := wire.metadata(12, str("a"), [16]byte{}); row.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("after the validation: got code %d, want %d", row.ErrorCode, kerr.UnknownTopicOrPartition.Code)
	}
}

// TestOldMetadataCreatesTopics checks that versions without the field for it create missing topics.
func TestOldMetadataCreatesTopics(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	for version := range int16(4) {
		name := "old-" + string(rune('0'+version))
		if row := wire.metadata(version, &name, [16]byte{}); row.ErrorCode != 0 || len(row.Partitions) != 1 {
			t.Errorf("version %d: got %+v, want a new topic", version, row)
		}
	}
	if row := wire.metadata(4, str("new"), [16]byte{}); row.ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("version 4 without auto-creation: got %+v, want code 3", row)
	}
}

// TestDeleteTopicsRows checks the rows of DeleteTopics version 6.
func TestDeleteTopicsRows(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	w.partitioned("b", 1)
	wire := w.wire(w.token)
	id := wire.idOf(publicTopic("a"))
	remove := func(rows ...kmsg.DeleteTopicsRequestTopic) []kmsg.DeleteTopicsResponseTopic {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.Version, r.Topics, r.TimeoutMillis = 6, rows, 10_000
		return roundTrip[*kmsg.DeleteTopicsResponse](wire, r).Topics
	}
	invalid := kerr.InvalidRequest.Code
	if got := remove(kmsg.DeleteTopicsRequestTopic{Topic: str("a"), TopicID: id}); got[0].ErrorCode != invalid {
		t.Errorf("name and id: got %+v, want code %d", got, invalid)
	}
	if got := remove(kmsg.DeleteTopicsRequestTopic{}); got[0].ErrorCode != invalid {
		t.Errorf("neither name nor id: got %+v, want code %d", got, invalid)
	}
	a := kmsg.DeleteTopicsRequestTopic{Topic: str("a")}
	if got := remove(a, a); len(got) != 1 || got[0].ErrorCode != invalid {
		t.Errorf("twice: got %+v, want one row with code %d", got, invalid)
	}
	if got := remove(a); got[0].ErrorCode != 0 || got[0].TopicID != id {
		t.Errorf("by name: got %+v, want the id %x", got, id)
	}
}

// TestRepeatedTopicsHaveOneRow checks that a response has one row for a topic that a request names twice.
func TestRepeatedTopicsHaveOneRow(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.partitioned("a", 1)
	wire := w.wire(w.token)
	create := roundTrip[*kmsg.CreateTopicsResponse](wire, creating(7, false, "x", "x", "y"))
	if len(create.Topics) != 2 || create.Topics[0].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("CreateTopics: got %+v, want one row with code 42 and one without", create.Topics)
	}
	grow := kmsg.NewPtrCreatePartitionsRequest()
	grow.Version = 3
	row := kmsg.NewCreatePartitionsRequestTopic()
	row.Topic, row.Count = "a", 2
	grow.Topics = append(grow.Topics, row, row)
	if got := roundTrip[*kmsg.CreatePartitionsResponse](wire, grow).Topics; len(got) != 1 ||
		got[0].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("CreatePartitions: got %+v, want one row with code 42", got)
	}
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 12
	metadata.Topics = []kmsg.MetadataRequestTopic{{Topic: str("a")}, {Topic: str("a")}}
	if got := roundTrip[*kmsg.MetadataResponse](wire, metadata).Topics; len(got) != 1 {
		t.Errorf("Metadata: got %d rows, want 1", len(got))
	}
}

// TestDescribeClusterEndpoints checks that only brokers can be described.
func TestDescribeClusterEndpoints(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	wire := w.wire(w.token)
	for kind, want := range map[int8]int16{
		1: 0, 2: kerr.MismatchedEndpointType.Code, 7: kerr.UnsupportedEndpointType.Code,
	} {
		r := kmsg.NewPtrDescribeClusterRequest()
		r.Version, r.EndpointType = 2, kind
		got := roundTrip[*kmsg.DescribeClusterResponse](wire, r)
		if got.ErrorCode != want || (len(got.Brokers) > 0) != (want == 0) {
			t.Errorf("endpoint type %d: got %+v, want code %d", kind, got, want)
		}
	}
}
