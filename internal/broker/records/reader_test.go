package records_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"freshet/internal/broker/records"
	"freshet/test/tally"
)

// mixedRecords returns small records and some that are larger than a reader's buffer.
func mixedRecords() []records.Record {
	random := rand.New(rand.NewPCG(1, 2))
	var all []records.Record
	for i := range 3000 {
		size := random.IntN(200)
		if i%500 == 7 {
			size = 100<<10 + random.IntN(200<<10)
		}
		value := make([]byte, size)
		for j := 0; j < size; j += 1 + random.IntN(50) {
			value[j] = byte(random.Uint32())
		}
		all = append(all, records.Record{Delta: int32(i), Time: 1000 + int64(i), Key: fmt.Append(nil, i), Value: value})
	}
	return all
}

var errShort = errors.New("memory is short")

// TestReaderStreams reads batches in pieces, with a grow function that fails every other time: the
// reader continues where it was.
func TestReaderStreams(t *testing.T) {
	t.Parallel()
	want := mixedRecords()
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reader, err := records.NewReader(compressBatch(t, build(want), c.codec, c.compress))
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			calls, most := 0, int64(0)
			grow := func(total int64) error {
				if calls++; calls%2 == 1 {
					return errShort
				}
				most = max(most, total)
				return nil
			}
			var got []records.Record
			for {
				_, r, err := reader.Next(grow)
				if errors.Is(err, errShort) {
					continue
				}
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("record %d: %v", len(got), err)
				}
				if reader.Memory() > most {
					t.Fatalf("record %d: the reader holds %d bytes, want at most the %d that it asked for", len(got),
						reader.Memory(), most)
				}
				got = append(got, clone(r))
			}
			if !sameRecords(got, want) {
				t.Errorf("got %d records, want the %d of the batch", len(got), len(want))
			}
		})
	}
}

// TestAttackDecompressorMemory reads batches that decompress to almost 64 MiB. The memory to check
// them must not depend on that, unless the client has compressed all in one block.
func TestAttackDecompressorMemory(t *testing.T) {
	t.Parallel()
	builder := records.NewBuilder(nil, 0)
	for i := range 60 {
		builder.Add(&records.Record{Delta: int32(i), Time: 1, Value: make([]byte, 1<<20)})
	}
	plain := builder.Finish()
	attempts, succeeded := 0, 0
	for _, c := range codecs {
		limit := int64(8 << 20)
		switch c.name {
		case "snappy": // one block
			limit = 70 << 20
		case "zstd", "lz4": // a window of 8 MiB, and two blocks of 4 MiB
			limit = 16 << 20
		}
		most := int64(0)
		grow := func(total int64) error {
			most = max(most, total)
			return nil
		}
		batch := compressBatch(t, plain, c.codec, c.compress)
		if _, err := records.Check(batch, records.Limits{MaxRecord: 5 << 20, Grow: grow}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		attempts++
		if most == 0 || most > limit {
			succeeded++
			t.Errorf("%s: checking %d bytes asked for %d bytes of memory, want at most %d", c.name, len(batch), most,
				limit)
		}
	}
	tally.Attack(t, "batches that decompress to 60 MiB", attempts, succeeded)
}

// TestMemoryOfLaterFrames checks that the memory of all frames of the compressed data is reserved,
// and not only that of the first.
func TestMemoryOfLaterFrames(t *testing.T) {
	t.Parallel()
	plain := build(mixedRecords())
	cut := len(plain) / 2
	frames := func(compress func(part []byte, large bool) []byte) func([]byte) []byte {
		return func(b []byte) []byte {
			return append(compress(b[:cut], false), compress(b[cut:], true)...)
		}
	}
	for _, c := range []struct {
		name     string
		codec    records.Codec
		least    int64
		compress func([]byte) []byte
	}{
		{"lz4", records.LZ4, 8 << 20, frames(func(b []byte, large bool) []byte {
			var out bytes.Buffer
			w := lz4.NewWriter(&out)
			size := lz4.Block64Kb
			if large {
				size = lz4.Block4Mb
			}
			_ = w.Apply(lz4.BlockSizeOption(size))
			_, _ = w.Write(b)
			_ = w.Close()
			return out.Bytes()
		})},
		{"zstd", records.Zstd, 16 << 20, frames(func(b []byte, large bool) []byte {
			var out bytes.Buffer
			size := 1 << 10
			if large {
				size = 16 << 20
			}
			w, _ := zstd.NewWriter(&out, zstd.WithWindowSize(size))
			_, _ = w.Write(b[:len(b)/2]) // in two parts: the frame has no size
			_ = w.Flush()
			_, _ = w.Write(b[len(b)/2:])
			_ = w.Close()
			return out.Bytes()
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := int64(0)
			grow := func(total int64) error {
				if first == 0 {
					first = total
				}
				return nil
			}
			batch := compressBatch(t, plain, c.codec, c.compress)
			if _, err := records.Check(batch, records.Limits{Grow: grow}); err != nil {
				t.Fatal(err)
			}
			if first < c.least {
				t.Errorf("reserved %d bytes at first, want at least %d", first, c.least)
			}
		})
	}
}

// TestAttackManyRecords checks that Check rejects a batch with more records than clients send.
func TestAttackManyRecords(t *testing.T) {
	t.Parallel()
	var all []records.Record
	for i := range records.MaxRecords + 1 {
		all = append(all, records.Record{Delta: int32(i), Time: 1})
	}
	succeeded := 0
	for _, c := range codecs {
		batch := compressBatch(t, build(all), c.codec, c.compress)
		if _, err := records.Check(batch, records.Limits{}); !errors.Is(err, records.ErrTooLarge) {
			succeeded++
			t.Errorf("%s: got %v for %d records, want %v", c.name, err, len(all), records.ErrTooLarge)
		}
		if _, err := records.Check(compressBatch(t, build(all[:records.MaxRecords]), c.codec, c.compress),
			records.Limits{}); err != nil {
			t.Errorf("%s: got %v for %d records, want no error", c.name, err, records.MaxRecords)
		}
	}
	tally.Attack(t, "batches with too many empty records", len(codecs), succeeded)
}
