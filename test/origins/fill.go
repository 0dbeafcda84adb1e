package origins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// kind describes a topic.
type kind struct {
	name       string
	partitions int32
	records    int   // in the first partition; each further partition has one more
	sizes      []int // sizes of the values, in rotation
	batch      int32 // maximum size of a batch in bytes; a small one makes single-record batches
	codec      kgo.CompressionCodec
}

const largeBatch = 900 << 10

// kinds are the topics. Most of them have batches above 64 KiB, because the server has a separate code
// path for them. Batches of different sizes in one partition make the size limits of fetch requests skip
// some partitions and not others, so the server reads partitions in a changing order. All clients of the
// matrix decompress gzip and Snappy.
var kinds = []kind{
	{"bytes", 1, 3000, []int{60}, largeBatch, kgo.NoCompression()},
	{"short", 8, 400, []int{200}, largeBatch, kgo.NoCompression()},
	{"medium", 3, 300, []int{2 << 10}, 300 << 10, kgo.NoCompression()},
	{"large", 2, 9, []int{200 << 10, 64 << 10, 150 << 10}, 210 << 10, kgo.NoCompression()},
	{"batches", 4, 120, []int{8 << 10}, largeBatch, kgo.NoCompression()},
	{"gzip", 5, 500, []int{1 << 10}, 200 << 10, kgo.GzipCompression()},
	{"snappy", 6, 100, []int{4 << 10, 100}, largeBatch, kgo.SnappyCompression()},
	{"single", 7, 40, []int{600}, 1 << 10, kgo.NoCompression()},
	{"mixed", 3, 60, []int{100_000, 300, 20_000, 90_000, 5_000, 60_000, 1_000}, 105_000, kgo.NoCompression()},
	{"uneven", 5, 20, []int{40_000, 70_000, 10_000, 150_000, 3_000}, 160_000, kgo.NoCompression()},
	{"one", 1, 1, []int{100 << 10}, largeBatch, kgo.NoCompression()},
	{"empty", 4, 0, nil, largeBatch, kgo.NoCompression()},
}

// Set is a set of topics whose records are known.
type Set struct {
	seeds  []string
	token  string
	prefix string
	counts map[string][]int64 // number of records in each partition, by topic
}

// Fill creates topics whose names begin with the prefix, and writes their records.
func Fill(ctx context.Context, seeds []string, token, prefix string) (*Set, error) {
	s, err := Create(ctx, seeds, token, prefix)
	if err != nil {
		return nil, err
	}
	return s, s.Write(ctx)
}

// Create creates the topics of Fill without records.
func Create(ctx context.Context, seeds []string, token, prefix string) (*Set, error) {
	s := &Set{seeds: seeds, token: token, prefix: prefix, counts: map[string][]int64{}}
	client, err := s.connect()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for i := range kinds {
		k, topic := &kinds[i], prefix+"-"+kinds[i].name
		if _, err := kadm.NewClient(client).CreateTopic(ctx, k.partitions, -1, nil, topic); err != nil {
			return nil, fmt.Errorf("creating topic %s: %w", topic, err)
		}
		s.counts[topic] = make([]int64, k.partitions)
		for p := range s.counts[topic] {
			if k.records > 0 {
				s.counts[topic][p] = int64(k.records + p)
			}
		}
	}
	return s, nil
}

// Write writes the records of all topics concurrently.
func (s *Set) Write(ctx context.Context) error {
	var writing sync.WaitGroup
	failures := make([]error, len(kinds))
	for i := range kinds {
		writing.Go(func() { failures[i] = s.write(ctx, &kinds[i]) })
	}
	writing.Wait()
	return errors.Join(failures...)
}

// write produces the records of a topic. The producer buffers all of them before it sends the first,
// so that batches reach their maximum size.
func (s *Set) write(ctx context.Context, k *kind) error {
	topic := s.prefix + "-" + k.name
	client, err := s.connect(
		kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ManualFlushing(),
		kgo.MaxBufferedRecords(1<<20), kgo.ProducerBatchMaxBytes(k.batch), kgo.ProducerBatchCompression(k.codec),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	var failures []error // franz-go calls one promise at a time
	for p, n := range s.counts[topic] {
		for offset := range n {
			at := position{topic, int32(p), offset} //nolint:gosec // few partitions
			record := &kgo.Record{Partition: at.partition, Value: value(at, k.sizes[offset%int64(len(k.sizes))])}
			client.Produce(ctx, record, func(r *kgo.Record, err error) {
				if err == nil && r.Offset != offset {
					err = fmt.Errorf("record was stored at offset %d", r.Offset)
				}
				if err != nil {
					failures = append(failures, fmt.Errorf("writing %s: %w", at, err))
				}
			})
		}
	}
	err = client.Flush(ctx)
	return errors.Join(append(failures, err)...)
}

// connect opens a franz-go client.
func (s *Set) connect(more ...kgo.Opt) (*kgo.Client, error) {
	login := plain.Auth{User: "user", Pass: "token:" + s.token}
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.seeds...), kgo.SASL(login.AsMechanism())}, more...)...)
}

// Topics returns the names of the topics, sorted.
func (s *Set) Topics() []string { return slices.Sorted(maps.Keys(s.counts)) }

// Records returns the number of records in all topics.
func (s *Set) Records() (n int64) {
	for _, counts := range s.counts {
		for _, count := range counts {
			n += count
		}
	}
	return n
}

// Environment returns the variables that clients of other modules and languages need:
//   - FRESHET_STREAM, the addresses of the servers, and FRESHET_TOKEN, the password after "token:";
//   - FRESHET_ORIGIN_TOPICS, the topics, separated by commas;
//   - FRESHET_ORIGIN_RECORDS, the number of records to read;
//   - FRESHET_ORIGIN_OUTPUT, the folder of the files that CheckFile reads.
func (s *Set) Environment(output string) []string {
	return []string{
		"FRESHET_STREAM=" + strings.Join(s.seeds, ","),
		"FRESHET_TOKEN=" + s.token,
		"FRESHET_ORIGIN_TOPICS=" + strings.Join(s.Topics(), ","),
		fmt.Sprint("FRESHET_ORIGIN_RECORDS=", s.Records()),
		"FRESHET_ORIGIN_OUTPUT=" + output,
	}
}
