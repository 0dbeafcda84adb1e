package kafkaapi

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BenchmarkCheckBody measures the check of a Produce request with 100 partitions before the codec
// decodes it.
func BenchmarkCheckBody(b *testing.B) {
	request := kmsg.NewPtrProduceRequest()
	request.SetVersion(11)
	row := kmsg.NewProduceRequestTopic()
	row.Topic = "orders"
	for i := range int32(100) {
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = i, make([]byte, 100)
		row.Partitions = append(row.Partitions, part)
	}
	request.Topics = append(request.Topics, row)
	body := request.AppendTo(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := checkBody(shapeOf(request.Key(), request.GetVersion()), body); err != nil {
			b.Fatal(err)
		}
	}
}
