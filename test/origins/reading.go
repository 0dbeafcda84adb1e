package origins

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"freshet/test/stamp"
)

// Reading counts the records that one consumer of all topics got. It is not safe for concurrent use.
type Reading struct {
	set  *Set
	next map[string][]int64 // next expected offset of each partition, by topic

	records, foreign, damaged, outOfOrder int64
	first                                 []error // the first few errors
}

// maxErrors bounds the number of single errors in a report.
const maxErrors = 5

// NewReading returns a Reading of a consumer that starts at the earliest offsets.
func (s *Set) NewReading() *Reading {
	r := &Reading{set: s, next: map[string][]int64{}}
	for topic, counts := range s.counts {
		r.next[topic] = make([]int64, len(counts))
	}
	return r
}

// Add checks a record. The consumer must get the records of a partition in order, each of them once.
func (r *Reading) Add(topic string, partition int32, offset int64, value []byte) {
	r.records++
	next := r.next[topic]
	if int(partition) >= len(next) || partition < 0 {
		r.count(&r.outOfOrder, fmt.Errorf("record of topic %q partition %d, which does not exist", topic, partition))
		return
	}
	if offset != next[partition] {
		r.count(&r.outOfOrder, fmt.Errorf("%s %d: got offset %d, want offset %d", topic, partition, offset,
			next[partition]))
	}
	next[partition] = offset + 1
	switch err := Check(topic, partition, offset, value); {
	case errors.Is(err, stamp.ErrForeign):
		r.count(&r.foreign, err)
	case err != nil:
		r.count(&r.damaged, err)
	}
}

func (r *Reading) count(counter *int64, err error) {
	*counter++
	if len(r.first) < maxErrors {
		r.first = append(r.first, err)
	}
}

// Complete reports whether the consumer has got as many records as the topics contain.
func (r *Reading) Complete() bool { return r.records >= r.set.Records() }

// Err returns an error unless the consumer got every record once, in order, unchanged and from the
// partition that the record was produced to.
func (r *Reading) Err() error {
	short := 0
	for topic, counts := range r.set.counts {
		for p, want := range counts {
			if r.next[topic][p] != want {
				short++
			}
		}
	}
	if short+len(r.first) == 0 && r.records == r.set.Records() {
		return nil
	}
	summary := fmt.Errorf("read %d of %d records: %d foreign, %d damaged, %d out of order; "+
		"%d partitions ended early or late", r.records, r.set.Records(), r.foreign, r.damaged, r.outOfOrder, short)
	return errors.Join(append([]error{summary}, r.first...)...)
}

// CheckFile checks the records that a client wrote to a file. Each record is a line with its topic,
// partition, offset and the size of its value, separated by spaces, and then a line with the value.
func (s *Set) CheckFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	r := s.NewReading()
	for in := bufio.NewReaderSize(file, 1<<20); err == nil; {
		err = r.addFrom(in)
	}
	if errors.Is(err, io.EOF) { // a client that was killed may have written half a record
		err = nil
	}
	return errors.Join(err, r.Err())
}

func (r *Reading) addFrom(in *bufio.Reader) error {
	var topic string
	var partition int32
	var offset int64
	var size int
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	if n, _ := fmt.Sscan(line, &topic, &partition, &offset, &size); n < 4 || size < 0 || size > 1<<20 {
		return fmt.Errorf("%.100q is not a line with topic, partition, offset and size", line)
	}
	value := make([]byte, size+1)
	if _, err := io.ReadFull(in, value); err != nil {
		return io.EOF
	}
	r.Add(topic, partition, offset, value[:size])
	return nil
}
