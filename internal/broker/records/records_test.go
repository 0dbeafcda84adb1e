package records_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/snappy/xerial"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"

	"freshet/internal/broker/records"
)

// specVector is the example batch of docs/spec/stream.md#batch.
const specVector = "0000000000000000" + "00000043" + "00000000" +
	"02" + "12dfbf6f" + "0000" +
	"00000000" + "0000018bcfe56800" + "0000018bcfe56800" +
	"ffffffffffffffff" + "ffff" + "ffffffff" + "00000001" +
	"22" + "00" + "00" + "00" +
	"046b31" + "0a68656c6c6f" + "02" + "0268" + "0276"

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// clone copies a record so that it remains valid after the callback.
func clone(r *records.Record) records.Record {
	c := *r
	c.Key, c.Value, c.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), nil
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, records.Header{Key: bytes.Clone(h.Key), Value: bytes.Clone(h.Value)})
	}
	return c
}

func collect(t testing.TB, batch []byte) []records.Record {
	t.Helper()
	var all []records.Record
	if err := records.Walk(batch, nil, func(_ int32, r *records.Record) error {
		all = append(all, clone(r))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestVector(t *testing.T) {
	t.Parallel()
	batch := unhex(t, specVector)
	head, err := records.Check(batch, records.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if head.Size != 79 || head.Count != 1 || head.MaxTime != 1700000000000 || head.ProducerID != records.NoProducer {
		t.Errorf("head is %+v, want 79 bytes, one record at 1700000000000 and no producer", head)
	}
	got := collect(t, batch)
	want := records.Record{
		Time: 1700000000000, Key: []byte("k1"), Value: []byte("hello"),
		Headers: []records.Header{{Key: []byte("h"), Value: []byte("v")}}, Size: 18,
	}
	if len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("records are %v, want %v", got, want)
	}

	b := records.NewBuilder(nil, 0)
	b.Add(&want)
	if built := b.Finish(); !bytes.Equal(built, batch) {
		t.Errorf("built\n%x, want\n%x", built, batch)
	}
}

// trickyRecords returns records with nulls, empty values, repeated and binary headers, and decreasing
// timestamps.
func trickyRecords() []records.Record {
	return []records.Record{
		{Time: 1000, Key: []byte("a"), Value: []byte("one")},
		{Delta: 1, Time: 900, Key: nil, Value: []byte{}},
		{Delta: 2, Time: 2000, Key: []byte{}, Value: nil},
		{Delta: 3, Time: -1, Key: []byte{0xff, 0}, Value: bytes.Repeat([]byte("xyz "), 500), Headers: []records.Header{
			{Key: []byte("h"), Value: []byte("1")},
			{Key: []byte("h"), Value: nil},
			{Key: []byte{0, 0xfe}, Value: []byte{}},
		}},
	}
}

func build(recs []records.Record) []byte {
	b := records.NewBuilder(nil, 7)
	for i := range recs {
		b.Add(&recs[i])
	}
	return b.Finish()
}

// sameRecords compares records and ignores their sizes.
func sameRecords(a, b []records.Record) bool {
	return slices.EqualFunc(a, b, func(a, b records.Record) bool {
		a.Size, b.Size = 0, 0
		return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
	})
}

// TestBuiltBatchDecodesWithFranzGo decodes the output of Builder with franz-go's codec.
func TestBuiltBatchDecodesWithFranzGo(t *testing.T) {
	t.Parallel()
	want := trickyRecords()
	batch := build(want)
	if got := collect(t, batch); !sameRecords(got, want) {
		t.Errorf("records are\n%v, want\n%v", got, want)
	}
	var theirs kmsg.RecordBatch
	if err := theirs.ReadFrom(batch); err != nil {
		t.Fatal(err)
	}
	if theirs.FirstOffset != 7 || theirs.NumRecords != 4 || theirs.MaxTimestamp != 2000 || theirs.LastOffsetDelta != 3 {
		t.Errorf("the client reads %+v, want base offset 7, 4 records, last delta 3 and maximum time 2000", theirs)
	}
	rest := theirs.Records
	for i := range want {
		length, n := binary.Varint(rest)
		var r kmsg.Record
		if err := r.ReadFrom(rest[:n+int(length)]); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		rest = rest[n+int(length):]
		if !bytes.Equal(r.Key, want[i].Key) || (r.Key == nil) != (want[i].Key == nil) ||
			!bytes.Equal(r.Value, want[i].Value) || (r.Value == nil) != (want[i].Value == nil) {
			t.Errorf("record %d: the client reads %q=%q, want %q=%q", i, r.Key, r.Value, want[i].Key, want[i].Value)
		}
		if got := theirs.FirstTimestamp + r.TimestampDelta64; got != want[i].Time {
			t.Errorf("record %d: the client reads time %d, want %d", i, got, want[i].Time)
		}
	}
}

// compressBatch returns a copy of the batch that is compressed as clients do.
func compressBatch(t testing.TB, batch []byte, codec records.Codec, compress func([]byte) []byte) []byte {
	t.Helper()
	compressed := append(bytes.Clone(batch[:records.BatchHeaderSize]), compress(batch[records.BatchHeaderSize:])...)
	binary.BigEndian.PutUint16(compressed[21:], uint16(codec))
	return fixChecksum(compressed)
}

// fixChecksum corrects the length and the checksum of a modified batch.
func fixChecksum(batch []byte) []byte {
	binary.BigEndian.PutUint32(batch[8:], uint32(len(batch)-12))
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	return batch
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func lz4ed(b []byte) []byte {
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func zstded(b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

var codecs = []struct {
	name     string
	codec    records.Codec
	compress func([]byte) []byte
}{
	{"gzip", records.Gzip, gzipped},
	{"snappy", records.Snappy, func(b []byte) []byte { return snappy.Encode(nil, b) }},
	{"snappy framed", records.Snappy, func(b []byte) []byte { return xerial.Encode(nil, b) }},
	{"lz4", records.LZ4, lz4ed},
	{"zstd", records.Zstd, zstded},
}

func TestCodecs(t *testing.T) {
	t.Parallel()
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := trickyRecords()
			batch := compressBatch(t, build(want), c.codec, c.compress)
			head, err := records.Check(batch, records.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if head.Codec() != c.codec {
				t.Errorf("codec is %d, want %d", head.Codec(), c.codec)
			}
			if got := collect(t, batch); !sameRecords(got, want) {
				t.Errorf("records are\n%v, want\n%v", got, want)
			}
			cut := fixChecksum(batch[:len(batch)-3])
			if _, err := records.Check(cut, records.Limits{}); !errors.Is(err, records.ErrInvalid) {
				t.Errorf("without its last bytes: error %v, want %v", err, records.ErrInvalid)
			}
		})
	}
}

// TestDecompressionIsBounded checks small batches that decompress to more than the limit.
func TestDecompressionIsBounded(t *testing.T) {
	t.Parallel()
	record := unhex(t, specVector)[records.BatchHeaderSize:]
	zeros := append(record, make([]byte, records.MaxDecompressedBytes+1-len(record))...)
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			batch := compressBatch(t, unhex(t, specVector), c.codec, func([]byte) []byte { return c.compress(zeros) })
			if _, err := records.Check(batch, records.Limits{}); !errors.Is(err, records.ErrTooLarge) {
				t.Errorf("%d bytes that decompress to %d: error %v, want %v", len(batch), len(zeros), err,
					records.ErrTooLarge)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	good := build(trickyRecords())
	change := func(at int, b ...byte) []byte {
		batch := bytes.Clone(good)
		copy(batch[at:], b)
		return fixChecksum(batch)
	}
	wrongSum := bytes.Clone(good)
	wrongSum[len(wrongSum)-1] ^= 1
	many := records.Record{Time: 1}
	for range records.MaxHeaders + 1 {
		many.Headers = append(many.Headers, records.Header{Key: []byte("h")})
	}
	heavy := records.Record{
		Time:    1,
		Headers: []records.Header{{Key: []byte("h"), Value: make([]byte, records.MaxHeaderBytes)}},
	}
	gap := trickyRecords()
	gap[1].Delta = 2
	for _, c := range []struct {
		name  string
		batch []byte
		want  error
		text  string
	}{
		{"nothing", nil, records.ErrCorrupt, "0 bytes"},
		{"half a head", good[:40], records.ErrCorrupt, "40 bytes"},
		{"cut", good[:len(good)-1], records.ErrCorrupt, "length field is"},
		{"wrong checksum", wrongSum, records.ErrCorrupt, "checksum"},
		{"two batches", append(bytes.Clone(good), good...), records.ErrInvalid, "one batch for each partition"},
		{"format 1", change(16, 1), records.ErrInvalid, "record format 1"},
		{"control", change(21, 0, 0x20), records.ErrInvalid, "control"},
		{"unknown bits", change(21, 1, 0), records.ErrInvalid, "attributes"},
		{"codec 5", change(21, 0, 5), records.ErrCodec, "5"},
		{"no records", change(57, 0, 0, 0, 0), records.ErrInvalid, "0 records"},
		{"negative count", change(57, 0xff, 0xff, 0xff, 0xff), records.ErrInvalid, "-1 records"},
		{"fewer than the header states", change(23, 0, 0, 0, 4, 0, 0, 0, 0), records.ErrInvalid, ""},
		{"last delta", change(23, 0, 0, 0, 9), records.ErrInvalid, "last offset delta is 9"},
		{"first time", change(27, 0xff, 0, 0, 0, 0, 0, 0, 0), records.ErrTimestamp, ""},
		{
			"producer id", change(43, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe), records.ErrInvalid,
			"producer id is -2",
		},
		{
			"producer without sequence", change(43, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff),
			records.ErrInvalid, "sequence -1",
		},
		{"bytes behind the last", fixChecksum(append(bytes.Clone(good), 0)), records.ErrInvalid, "1 bytes follow"},
		{"gap", build(gap), records.ErrInvalid, "record 1: "},
		{"too many headers", build([]records.Record{many}), records.ErrTooLarge, "1001 headers"},
		{"heavy headers", build([]records.Record{heavy}), records.ErrTooLarge, "record headers have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := records.Check(c.batch, records.Limits{})
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("error is %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
	if _, err := records.Check(bytes.Clone(good), records.Limits{MaxRecord: 1999}); !errors.Is(err,
		records.ErrTooLarge) {
		t.Errorf("a record over the limit: error %v, want %v", err, records.ErrTooLarge)
	} else if wrong := new(records.RecordError); !errors.As(err, &wrong) || wrong.Index != 3 {
		t.Errorf("error is %v, want a RecordError of record 3", err)
	}
	if _, err := records.Check(bytes.Clone(good), records.Limits{MaxRecord: 2002}); err != nil {
		t.Errorf("records within the limit: %v, want no error", err)
	}
}

func TestMaxTimeIsCorrected(t *testing.T) {
	t.Parallel()
	batch := build(trickyRecords())
	binary.BigEndian.PutUint64(batch[35:], 5)
	head, err := records.Check(fixChecksum(batch), records.Limits{})
	if err != nil || head.MaxTime != 2000 {
		t.Fatalf("largest time is %d (error %v), want 2000", head.MaxTime, err)
	}
	if again, err := records.Check(batch, records.Limits{}); err != nil || again != head {
		t.Errorf("checked again: %+v, %v, want %+v", again, err, head)
	}
}

func TestSetBaseOffsetAndAppendTime(t *testing.T) {
	t.Parallel()
	batch := build(trickyRecords())
	records.SetBaseOffset(batch, 1234, 5)
	records.StampAppendTime(batch, 777)
	head, err := records.ReadBatchHeader(batch)
	if err != nil {
		t.Fatal(err)
	}
	if head.BaseOffset != 1234 || head.LeaderEpoch != 5 || head.MaxTime != 777 || !head.AppendTime() {
		t.Errorf("head is %+v, want offset 1234, epoch 5 and append time 777", head)
	}
	for _, r := range collect(t, batch) {
		if r.Time != 777 {
			t.Errorf("record %d has time %d, want 777", r.Delta, r.Time)
		}
	}
}

func TestWalkStopsAtAnError(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	seen := 0
	err := records.Walk(build(trickyRecords()), nil, func(i int32, _ *records.Record) error {
		if seen++; i == 1 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || seen != 2 {
		t.Errorf("%d records and error %v, want 2 and %v", seen, err, stop)
	}
}

func TestBuilderWithoutRecords(t *testing.T) {
	t.Parallel()
	if got := records.NewBuilder([]byte("abc"), 0).Finish(); string(got) != "abc" {
		t.Errorf("buffer is %q, want it unchanged", got)
	}
}
