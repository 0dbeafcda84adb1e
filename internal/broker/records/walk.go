package records

import (
	"errors"
	"fmt"
	"io"

	"freshet/internal/base/wire"
)

// Limits of every batch (docs/spec/stream.md#limits).
const (
	// MaxDecompressedBytes bounds the decompressed records of a batch in bytes.
	MaxDecompressedBytes = 64 << 20
	// MaxRecords bounds the records of a batch that a producer sends. Stored batches may have more.
	MaxRecords = 250_000
	// MaxHeaders bounds the number of headers of a record.
	MaxHeaders = 1000
	// MaxHeaderBytes bounds the total size of the keys and values of a record's headers.
	MaxHeaderBytes = 1 << 20
)

// Header is one header of a record. A nil Value is null.
type Header struct {
	Key   []byte
	Value []byte
}

// Record is one record of a batch. Its slices are valid only during the callback that receives it.
type Record struct {
	Delta   int32 // offset relative to the batch's base offset
	Time    int64 // timestamp in epoch milliseconds, -1 for none
	Key     []byte
	Value   []byte // nil for null, like Key
	Headers []Header
	Size    int // encoded size in bytes before compression
}

// Limits are limits of the caller in addition to the constants of this package.
type Limits struct {
	MaxRecord int  // bytes of key and value together; 0 means no limit
	Grow      Grow // asked before memory is used to decompress; nil means no limit
}

// encodedRecord returns the largest encoded record within the limits, or 0 without a limit.
func (l *Limits) encodedRecord() int64 {
	const lengths = 64 + MaxHeaders*2*5 // at most five bytes for each length of a header
	if l.MaxRecord <= 0 {
		return 0
	}
	return int64(l.MaxRecord) + MaxHeaderBytes + lengths
}

// Check validates data that a producer sent: exactly one batch with a correct checksum and readable
// records, in the order and number that the header states. The error of an invalid record is a
// *RecordError. Some clients write a wrong maximum timestamp, which searches by time rely on: Check
// corrects it in data. Only a broker sets append times, so Check clears the bit for them in data.
// After an error data is unchanged.
func Check(data []byte, limits Limits) (BatchHeader, error) {
	head, err := ReadBatchHeader(data)
	if err != nil {
		return BatchHeader{}, err
	}
	if head.Size != len(data) {
		return BatchHeader{}, fmt.Errorf("%w: %d bytes follow the batch; send one batch for each partition", ErrInvalid,
			len(data)-head.Size)
	}
	if !checksumValid(data) {
		return BatchHeader{}, fmt.Errorf("%w: checksum does not match", ErrCorrupt)
	}
	if err := head.check(); err != nil {
		return BatchHeader{}, err
	}
	changed := head.AppendTime()
	head.Attributes &^= appendTimeBit
	largest, err := checkRecords(&head, data, &limits)
	if err != nil {
		return BatchHeader{}, err
	}
	if changed {
		head.writeAttributes(data)
	}
	if largest != head.MaxTime {
		changed = true
		head.MaxTime = largest
		putInt64(data, atMaxTime, largest)
	}
	if changed {
		writeChecksum(data)
	}
	return head, nil
}

// checkRecords validates the records of a batch and returns their largest timestamp.
func checkRecords(head *BatchHeader, data []byte, limits *Limits) (largest int64, err error) {
	reader := newReader(head, data)
	reader.maxRecord = limits.encodedRecord()
	defer reader.Close()
	largest = -1
	err = reader.each(limits.Grow, func(i int32, r *Record) error {
		if r.Delta != i {
			return fmt.Errorf("%w: offset delta is %d, want %d", ErrInvalid, r.Delta, i)
		}
		if r.Time < -1 {
			return fmt.Errorf("%w: %d", ErrTimestamp, r.Time)
		}
		if size := len(r.Key) + len(r.Value); limits.MaxRecord > 0 && size > limits.MaxRecord {
			return fmt.Errorf("%w: key and value have %d bytes, at most %d are allowed", ErrTooLarge, size,
				limits.MaxRecord)
		}
		largest = max(largest, r.Time)
		return nil
	})
	return largest, err
}

// check validates the fields of a header that a producer sent.
func (h *BatchHeader) check() error {
	switch {
	case h.Attributes&^knownBits != 0:
		return fmt.Errorf("%w: attributes %#x contain unknown bits", ErrInvalid, h.Attributes)
	case h.Control():
		return fmt.Errorf("%w: producers must not send control batches", ErrInvalid)
	case h.Codec() > Zstd:
		return fmt.Errorf("%w: %d", ErrCodec, h.Codec())
	case h.Count < 1:
		return fmt.Errorf("%w: batch has %d records", ErrInvalid, h.Count)
	case h.Count > MaxRecords:
		return fmt.Errorf("%w: batch has %d records, at most %d are allowed; send smaller batches", ErrTooLarge,
			h.Count, MaxRecords)
	case h.LastDelta != h.Count-1:
		return fmt.Errorf("%w: last offset delta is %d with %d records", ErrInvalid, h.LastDelta, h.Count)
	case h.FirstTime < -1 || h.MaxTime < -1:
		return fmt.Errorf("%w: %d to %d", ErrTimestamp, h.FirstTime, h.MaxTime)
	case h.ProducerID < NoProducer:
		return fmt.Errorf("%w: producer id is %d", ErrInvalid, h.ProducerID)
	case h.ProducerID != NoProducer && (h.ProducerEpoch < 0 || h.Sequence < 0):
		return fmt.Errorf("%w: producer %d has epoch %d and sequence %d", ErrInvalid, h.ProducerID,
			h.ProducerEpoch, h.Sequence)
	}
	return nil
}

// Walk calls each for every record of a whole batch, in order, until each returns an error. It does
// not check the checksum. grow may be nil.
func Walk(batch []byte, grow Grow, each func(i int32, r *Record) error) error {
	reader, err := NewReader(batch)
	if err != nil {
		return err
	}
	defer reader.Close()
	return reader.each(grow, each)
}

// each calls visit for every record.
func (r *Reader) each(grow Grow, visit func(i int32, r *Record) error) error {
	for {
		i, record, err := r.Next(grow)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(i, record); err != nil {
			return &RecordError{Index: i, Err: err}
		}
	}
}

// read decodes the first record of data and returns the bytes after it. It reuses the capacity of
// r.Headers.
func (r *Record) read(head *BatchHeader, data []byte) (rest []byte, err error) {
	in := wire.NewReader(data)
	fields := wire.NewReader(in.Bytes(recordLength(&in)))
	if in.Err() != nil {
		return nil, errRecordLength
	}
	r.Size = len(data) - in.Len()

	fields.Skip(1) // attributes, unused in format 2
	timeDelta := fields.Varint()
	delta := fields.Varint()
	r.Key = fields.Nullable()
	r.Value = fields.Nullable()
	headers := fields.Varint()
	if fields.Err() != nil || headers < 0 {
		return nil, errRecordLength
	}
	if headers > MaxHeaders {
		return nil, fmt.Errorf("%w: record has %d headers, at most %d are allowed", ErrTooLarge, headers, MaxHeaders)
	}
	r.Headers = r.Headers[:0]
	bytes := 0
	for range headers {
		header := Header{Key: fields.Nullable(), Value: fields.Nullable()}
		if header.Key == nil {
			return nil, errRecordLength // a header's key is never null
		}
		bytes += len(header.Key) + len(header.Value)
		r.Headers = append(r.Headers, header)
	}
	switch {
	case fields.End() != nil:
		return nil, errRecordLength
	case bytes > MaxHeaderBytes:
		return nil, fmt.Errorf("%w: record headers have %d bytes, at most %d are allowed", ErrTooLarge, bytes,
			MaxHeaderBytes)
	case delta < 0 || delta > int64(head.LastDelta):
		return nil, fmt.Errorf("%w: offset delta is %d, the last of the batch is %d", ErrInvalid, delta, head.LastDelta)
	}
	r.Delta = int32(delta) //nolint:gosec // bounded above
	if r.Time = head.FirstTime + timeDelta; head.AppendTime() {
		r.Time = head.MaxTime
	}
	return in.Rest(), nil
}

var errRecordLength = fmt.Errorf("%w: record fields do not match the record length", ErrInvalid)

// recordLength consumes the length of a record; -1 for a length that no record may have.
func recordLength(r *wire.Reader) int {
	n := r.Varint()
	if n < 0 || n > MaxDecompressedBytes {
		return -1
	}
	return int(n)
}
