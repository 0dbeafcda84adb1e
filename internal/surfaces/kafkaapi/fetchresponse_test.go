package kafkaapi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestFetchResponse checks for random responses in all versions that the parts together equal the
// codec's encoding.
func TestFetchResponse(t *testing.T) {
	t.Parallel()
	for version := int16(4); version <= 17; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(3, uint64(version)))
			for range 30 {
				response := &fetchResponse{
					version: version, throttleMillis: random.Int32(),
					errorCode: int16(random.Int32()), sessionID: random.Int32(),
				}
				for range random.IntN(8) {
					part := randomPartition(t, random)
					key := topicKey{fmt.Sprint("topic-", random.IntN(3)), [16]byte{}}
					if version >= 13 {
						key = topicKey{"", [16]byte{byte(random.IntN(3))}}
					}
					response.add(key, &part)
				}
				for i := range random.IntN(3) {
					rack := fmt.Sprint("rack-", i)
					broker := kmsg.FetchResponseBroker{NodeID: int32(i), Host: "member", Port: 9092, Rack: &rack}
					response.brokers = append(response.brokers, broker)
				}
				a := &pendingResponse{header: header{correlation: 7}, flexible: version >= 12}
				wanted, _ := encode(a, inCodec(response))
				want := bytes.Join(wanted, nil)
				parts, size := encode(a, response)
				got := written(t, parts)
				if size != len(got) || !bytes.Equal(got, want) {
					t.Fatalf("frame: got %d bytes with size field %d, want the %d bytes of the codec", len(got),
						size, len(want))
				}
				if !bytes.Equal(response.AppendTo([]byte("x")),
					append([]byte("x"), inCodec(response).AppendTo(nil)...)) {
					t.Fatal("AppendTo: got other bytes than the codec")
				}
				response.reset()
			}
		})
	}
}

// randomPartition returns a partition with batches of random size, and sometimes a leader.
func randomPartition(t *testing.T, random *rand.Rand) fetchResponsePartition {
	t.Helper()
	part := newFetchResponsePartition(random.Int32())
	part.errorCode, part.highWatermark, part.logStart = int16(random.Int32()), random.Int64(), random.Int64()
	if random.IntN(3) == 0 {
		part.leader.LeaderID, part.leader.LeaderEpoch = random.Int32(), random.Int32()
	}
	if random.IntN(3) == 0 {
		part.diverging.Epoch, part.diverging.EndOffset = random.Int32(), random.Int64()
	}
	whole := randomBytes(random, random.IntN([]int{1, 100, 10 << 10, 300 << 10}[random.IntN(4)]))
	for rest := whole; len(rest) > 0; {
		n := 1 + random.IntN(len(rest))
		begins := part.batches.add(rest[:n])
		if least := min(n, contiguousPrefix); len(begins) < least || !bytes.Equal(begins[:least], rest[:least]) {
			t.Fatalf("added %d bytes: the first %d are not in one part", n, least)
		}
		rest = rest[n:]
	}
	if part.batches.size != len(whole) || !bytes.Equal(bytes.Join(part.batches.segments, nil), whole) {
		t.Fatalf("buffer of %d bytes: got %d bytes, or other content", len(whole), part.batches.size)
	}
	return part
}

// inCodec converts a response to the codec's type.
func inCodec(r *fetchResponse) *kmsg.FetchResponse {
	out := kmsg.NewPtrFetchResponse()
	out.Version, out.ThrottleMillis, out.ErrorCode, out.SessionID = r.version, r.throttleMillis,
		r.errorCode, r.sessionID
	if r.version >= 16 { // the codec would also write them in older versions
		out.Brokers = r.brokers
	}
	for i := range r.topics {
		row := kmsg.NewFetchResponseTopic()
		row.Topic, row.TopicID = r.topics[i].topic, r.topics[i].id
		for _, p := range r.topics[i].partitions {
			part := kmsg.NewFetchResponseTopicPartition()
			part.Partition, part.ErrorCode, part.CurrentLeader = p.index, p.errorCode, p.leader
			part.DivergingEpoch = p.diverging
			part.HighWatermark, part.LastStableOffset, part.LogStartOffset = p.highWatermark,
				p.highWatermark, p.logStart
			part.RecordBatches = append([]byte{}, bytes.Join(p.batches.segments, nil)...)
			row.Partitions = append(row.Partitions, part)
		}
		out.Topics = append(out.Topics, row)
	}
	return out
}

// written returns the bytes that are written for some parts, step by step.
func written(t *testing.T, parts [][]byte) (all []byte) {
	t.Helper()
	for len(parts) > 0 {
		var some [][]byte
		some, parts = nextWrite(parts)
		size := 0
		for _, part := range some {
			all = append(all, part...)
			size += len(part)
		}
		if size == 0 || size > smallFrame+4<<10 {
			t.Fatalf("got %d bytes in one write, want fewer", size)
		}
	}
	return all
}

func randomBytes(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}
