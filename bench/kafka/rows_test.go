package kafka

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/bench/payload"
)

// load describes what producers write.
type load struct {
	records, batch, producers int
	of                        func() [][]byte // the values; no two of a trial are equal
	codec                     kgo.CompressionCodec
	noLinger                  bool // do not linger for more records
}

// mostRecords is the largest number of records of a load: each trial sends a value once.
const mostRecords = 160_000

// The values of the rows. A pool is generated when the first row needs it.
var (
	events   = sync.OnceValue(func() [][]byte { return payload.Pool(mostRecords, payload.Event) })
	random   = sync.OnceValue(func() [][]byte { return payload.Pool(mostRecords, payload.Random) })
	readings = sync.OnceValue(func() [][]byte { return payload.Pool(mostRecords, payload.Reading) })
)

// bytes returns the size of all values that the load writes.
func (l *load) bytes() (sum int) {
	for _, value := range l.of()[:l.records/l.producers*l.producers] {
		sum += len(value)
	}
	return sum
}

func produceRow(name string, l load) row {
	return onEveryBroker(name, func(t *trial) (outcome, error) {
		var clients []*kgo.Client
		err := t.prepare(func() (err error) { clients, err = l.connect(t); return err })
		if err == nil {
			err = l.produce(t, clients)
		}
		return outcome{records: l.records, bytes: l.bytes()}, err
	})
}

// connect creates the topic and the producers, and warms up each producer with one record.
func (l *load) connect(t *trial) ([]*kgo.Client, error) {
	admin, err := t.client()
	if err != nil {
		return nil, err
	}
	if _, err := kadm.NewClient(admin).CreateTopic(t.ctx, 1, 1, nil, t.topic); err != nil {
		return nil, fmt.Errorf("creating %s: %w", t.topic, err)
	}
	linger := 5 * time.Millisecond
	if l.noLinger {
		linger = 0
	}
	clients := make([]*kgo.Client, l.producers)
	for i := range clients {
		clients[i], err = t.client(kgo.DefaultProduceTopic(t.topic), kgo.ProducerBatchMaxBytes(int32(l.batch)),
			kgo.ProducerLinger(linger), kgo.ProducerBatchCompression(l.codec), kgo.MaxBufferedRecords(50_000))
		if err != nil {
			return nil, err
		}
	}
	return clients, each(len(clients), func(i int) error {
		return clients[i].ProduceSync(t.ctx, &kgo.Record{Value: []byte("first")}).FirstErr()
	})
}

// produce writes the records and waits until all are acknowledged.
func (l *load) produce(t *trial, clients []*kgo.Client) error {
	values, share := l.of(), l.records/len(clients)
	return each(len(clients), func(i int) error {
		failed := make(chan error, 1)
		for _, value := range values[i*share : (i+1)*share] {
			clients[i].Produce(t.ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			})
		}
		if err := clients[i].Flush(t.ctx); err != nil {
			return err
		}
		select {
		case err := <-failed:
			return err
		default:
			return nil
		}
	})
}

// percentiles returns the median and the 99th percentile.
func percentiles(times []time.Duration) (p50, p99 time.Duration) {
	slices.SortFunc(times, cmp.Compare[time.Duration])
	return times[len(times)/2], times[len(times)*99/100]
}

// singleRow has every producer wait for each record.
func singleRow(name string, producers, count int) row {
	return onEveryBroker(name, func(t *trial) (outcome, error) {
		l := load{producers: producers, batch: 16 << 10}
		var clients []*kgo.Client
		if err := t.prepare(func() (err error) { clients, err = l.connect(t); return err }); err != nil {
			return outcome{}, err
		}
		values := events()
		times := make([]time.Duration, producers*count)
		err := each(producers, func(n int) error {
			for i := range count {
				began := time.Now()
				done := make(chan error, 1)
				record := &kgo.Record{Value: values[n*count+i]}
				clients[n].TryProduce(t.ctx, record, func(_ *kgo.Record, err error) { done <- err })
				_ = clients[n].Flush(t.ctx) // send without lingering
				if err := <-done; err != nil {
					return err
				}
				times[n*count+i] = time.Since(began)
			}
			return nil
		})
		got := outcome{records: producers * count, bytes: producers * count * payload.Size}
		got.p50, got.p99 = percentiles(times)
		return got, err
	})
}

// consume reads so many records with c and passes them to see.
func consume(t *trial, c *kgo.Client, records int, see func(*kgo.Record)) error {
	for got := 0; got < records; {
		fetches := c.PollFetches(t.ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("consuming: %d records, then %w", got, err)
		}
		got += fetches.NumRecords()
		if see != nil {
			fetches.EachRecord(see)
		}
	}
	return nil
}

func consumeRow(name string, l load) row {
	return onEveryBroker(name, func(t *trial) (outcome, error) {
		err := t.prepare(func() error {
			clients, err := l.connect(t)
			if err != nil {
				return err
			}
			if err := l.produce(t, clients); err != nil {
				return err
			}
			_, err = t.k.settle(t.ctx)
			return err
		})
		if err != nil {
			return outcome{}, err
		}
		c, err := t.client(kgo.ConsumeTopics(t.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			return outcome{}, err
		}
		return outcome{records: l.records}, consume(t, c, l.records, nil)
	})
}

// tailRow has a consumer read the records while producers write them.
func tailRow(name string, l load) row {
	return onEveryBroker(name, func(t *trial) (outcome, error) {
		clients, c, err := l.connectBoth(t)
		if err != nil {
			return outcome{}, err
		}
		produced := make(chan error, 1)
		go func() { produced <- l.produce(t, clients) }()
		if err := consume(t, c, l.records, nil); err != nil {
			return outcome{}, err
		}
		return outcome{records: l.records}, <-produced
	})
}

// connectBoth creates producers, and a consumer that has read all existing records.
func (l *load) connectBoth(t *trial) (clients []*kgo.Client, c *kgo.Client, err error) {
	err = t.prepare(func() error {
		if clients, err = l.connect(t); err != nil {
			return err
		}
		if c, err = t.client(kgo.ConsumeTopics(t.topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())); err != nil {
			return err
		}
		return consume(t, c, l.producers, nil)
	})
	return clients, c, err
}

// endToEndRow measures, at a fixed rate, the time from before a record is passed to the
// producer until the consumer has it.
func endToEndRow(name string, rate int, length time.Duration) row {
	return onEveryBroker(name, func(t *trial) (outcome, error) {
		l := load{producers: 1, batch: 16 << 10, noLinger: true}
		clients, c, err := l.connectBoth(t)
		if err != nil {
			return outcome{}, err
		}
		const tick = 5 * time.Millisecond
		records := rate * int(length/tick) / int(time.Second/tick)
		produced := make(chan error, 1)
		go func() {
			ticker := time.NewTicker(tick)
			defer ticker.Stop()
			for sent := 0; sent < records; <-ticker.C {
				for range rate / int(time.Second/tick) {
					value := binary.BigEndian.AppendUint64(make([]byte, 0, 100), uint64(time.Now().UnixNano()))
					clients[0].Produce(t.ctx, &kgo.Record{Value: value[:100]}, nil)
					sent++
				}
			}
			produced <- clients[0].Flush(t.ctx)
		}()
		times := make([]time.Duration, 0, records)
		err = consume(t, c, records, func(r *kgo.Record) {
			times = append(times, time.Duration(time.Now().UnixNano()-int64(binary.BigEndian.Uint64(r.Value))))
		})
		if err != nil {
			return outcome{}, err
		}
		if err := <-produced; err != nil {
			return outcome{}, err
		}
		got := outcome{records: records}
		got.p50, got.p99 = percentiles(times)
		got.note, err = t.diskSync()
		return got, err
	})
}

// commitRow has consumers, each in its own consumer group, commit repeatedly. They are
// plain connections: full clients would use more CPU time than the broker.
func commitRow(name string, consumers, count int) row {
	return onEveryBroker(name, func(t *trial) (outcome, error) {
		requests := make([]*kmsg.OffsetCommitRequest, consumers)
		var conns []*wire
		err := t.prepare(func() (err error) {
			l := load{producers: 1, batch: 16 << 10}
			producers, err := l.connect(t)
			if err != nil {
				return err
			}
			if conns, err = t.dialMany(consumers); err != nil {
				return err
			}
			for n := range requests {
				requests[n] = newCommit(fmt.Sprintf("%s-%d", t.topic, n), t.topic)
			}
			return each(consumers, func(n int) error { // creates the group's coordinator if necessary
				offsets := make(kadm.Offsets)
				offsets.Add(kadm.Offset{Topic: t.topic, Partition: 0, At: 0, LeaderEpoch: -1})
				res, err := kadm.NewClient(producers[0]).CommitOffsets(t.ctx, requests[n].Group, offsets)
				return errors.Join(err, res.Error())
			})
		})
		if err != nil {
			return outcome{}, err
		}
		times := make([]time.Duration, consumers*count)
		err = each(consumers, func(n int) error {
			for i := range count {
				requests[n].Topics[0].Partitions[0].Offset = int64(i)
				began := time.Now()
				response, err := conns[n].roundTrip(requests[n])
				if err != nil {
					return err
				}
				times[n*count+i] = time.Since(began)
				if done, _ := response.(*kmsg.OffsetCommitResponse); done.Topics[0].Partitions[0].ErrorCode != 0 {
					return fmt.Errorf("committing: code %d", done.Topics[0].Partitions[0].ErrorCode)
				}
			}
			return nil
		})
		got := outcome{records: consumers * count}
		got.p50, got.p99 = percentiles(times)
		return got, err
	})
}

// newCommit returns a request to commit an offset of a topic's first partition.
func newCommit(group, topic string) *kmsg.OffsetCommitRequest {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Version, request.Group = 7, group
	of := kmsg.NewOffsetCommitRequestTopic()
	of.Topic = topic
	of.Partitions = append(of.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	request.Topics = append(request.Topics, of)
	return request
}

// diskSync measures how long the disk takes to sync a small write, at the rate of
// endToEndRow and directly after it. No broker that syncs can have a lower latency.
func (t *trial) diskSync() (note string, err error) {
	err = t.prepare(func() error {
		f, err := os.CreateTemp("", "freshet-sync-")
		if err != nil {
			return err
		}
		defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
		times := make([]time.Duration, 200)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := range times {
			<-tick.C
			began := time.Now()
			if _, err := f.Write(make([]byte, 6<<10)); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
			times[i] = time.Since(began)
		}
		p50, p99 := percentiles(times)
		note = fmt.Sprintf("(sync of 6 KiB afterwards: %s, %s)", p50.Round(10*time.Microsecond),
			p99.Round(10*time.Microsecond))
		return nil
	})
	return note, err
}
