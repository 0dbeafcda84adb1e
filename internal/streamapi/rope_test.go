package streamapi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRopesInAFrame makes answers of which some batches are in ropes: sent in order, the
// parts are what the codec would have written.
func TestRopesInAFrame(t *testing.T) {
	t.Parallel()
	for _, version := range []int16{4, 11, 12, 17} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(3, uint64(version)))
			for range 50 {
				plain, roped := kmsg.NewPtrFetchResponse(), kmsg.NewPtrFetchResponse()
				plain.Version, roped.Version = version, version
				var all ropes
				for i := range 1 + random.IntN(4) {
					row := kmsg.NewFetchResponseTopic()
					row.Topic, row.TopicID = fmt.Sprint("topic-", i), [16]byte{1}
					part := newFetchedPartition(int32(i))
					whole := randomBytes(random, random.IntN(300<<10))
					part.RecordBatches = whole
					row.Partitions = append(row.Partitions, part)
					plain.Topics = append(plain.Topics, row)
					var r rope
					for rest := whole; len(rest) > 0; {
						n := 1 + random.IntN(len(rest))
						begins := r.add(rest[:n])
						if least := min(n, ropeHead); len(begins) < least || !bytes.Equal(begins[:least], rest[:least]) {
							t.Fatalf("%d bytes were added: their first %d are not in one part", n, least)
						}
						rest = rest[n:]
					}
					if r.size != len(whole) {
						t.Fatalf("size of a rope: got %d, want %d", r.size, len(whole))
					}
					if len(r.parts) > 1 {
						part.RecordBatches = mark()
						all = append(all, r)
					}
					row.Partitions = []kmsg.FetchResponseTopicPartition{part}
					roped.Topics = append(roped.Topics, row)
				}
				a := &answer{header: header{correlation: 7}, flexible: version >= 12}
				wanted, size, err := encode(a, plain)
				if err != nil {
					t.Fatal(err)
				}
				want := bytes.Join(wanted, nil)
				if size != len(want) {
					t.Fatalf("size of a frame: got %d, want %d", size, len(want))
				}
				a.ropes = &all
				parts, size, err := encode(a, roped)
				if err != nil {
					t.Fatal(err)
				}
				got := written(t, parts)
				if size != len(got) || !bytes.Equal(got, want) {
					t.Fatalf("frame with %d ropes: got %d bytes, said to be %d, want the %d that the codec writes", len(all), len(got), size, len(want))
				}
				all.free()
			}
		})
	}
}

// written is what is sent of some parts, a piece at a time.
func written(t *testing.T, parts [][]byte) (all []byte) {
	t.Helper()
	for len(parts) > 0 {
		var some [][]byte
		some, parts = atOnce(parts)
		size := 0
		for _, part := range some {
			all = append(all, part...)
			size += len(part)
		}
		if size == 0 || size > smallFrame+4<<10 {
			t.Fatalf("%d bytes are written at once", size)
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
