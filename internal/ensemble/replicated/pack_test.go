package replicated

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
)

// events returns n bytes of typical messages: JSON of about 1 KiB with ids, times, repeated
// names, and text.
func events(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields(
		"please leave the parcel with a neighbour when nobody answers ring twice not before noon invoice to the office")
	var out []byte
	for len(out) < n {
		out = fmt.Appendf(out,
			`{"id":"%016x%016x","type":"order.paid","source":"/shop/checkout",`+
				`"time":"2026-01-02T15:%02d:%02d.%06dZ","traceparent":"00-%016x%016x-%016x-01",`,
			r.Uint64(), r.Uint64(), r.IntN(60), r.IntN(60), r.IntN(1e6), r.Uint64(), r.Uint64(), r.Uint64())
		for i := range 4 {
			out = fmt.Appendf(out,
				`"line%d":{"sku":"SKU-%06d","name":"%s","quantity":%d,"price":{"amount":"%d.%02d","currency":"EUR"}},`,
				i, r.IntN(1e6), words[r.IntN(len(words))], r.IntN(9), r.IntN(200), r.IntN(100))
		}
		out = append(out, `"note":"`...)
		for range 50 {
			out = append(append(out, words[r.IntN(len(words))]...), ' ')
		}
		out = append(out, `"}`...)
	}
	return out[:n]
}

// noise returns n incompressible bytes.
func noise(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(out) // never fails
	return out
}

func TestPack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		batch  []byte
		packed bool
	}{
		"empty":                       {nil, false},
		"below the minimum":           {events(minPackBytes - 1), false},
		"minimum":                     {events(minPackBytes), true},
		"large":                       {events(300 << 10), true},
		"larger than a pooled buffer": {events(maxPooledBytes), true},
		"random":                      {noise(300 << 10), false},
		"saves a tenth":               {append(noise(90<<10), make([]byte, 10<<10)...), false},
		"saves a fifth":               {append(noise(80<<10), make([]byte, 20<<10)...), true},
		"maximum":                     {make([]byte, maxPackBytes), true},
		"above the maximum":           {make([]byte, maxPackBytes+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			data, packing := pack(tc.batch)
			if (packing == packingS2) != tc.packed || !tc.packed && packing != "" {
				t.Fatalf("got packing %q of %d bytes, want it packed: %t", packing, len(tc.batch), tc.packed)
			}
			if !tc.packed && len(data) > 0 && &data[0] != &tc.batch[0] {
				t.Error("got a copy, want the batch itself")
			}
			if tc.packed && cap(data) > len(tc.batch)-len(tc.batch)/minSavingDivisor+1024 {
				t.Errorf("got %d bytes with capacity %d, want a smaller capacity", len(data), cap(data))
			}
			pack(noise(min(len(tc.batch), 1<<20))) // into the same buffer
			got, err := unpack(packing, data)
			if err != nil || !bytes.Equal(got, tc.batch) {
				t.Fatalf("unpack: got %d bytes, error %v; want the original batch", len(got), err)
			}
			if tc.packed && cap(got) < len(got)+logPositionLen+16 {
				t.Errorf("got a spare capacity of %d bytes, want enough for the position", cap(got)-len(got))
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	good, _ := pack(events(minPackBytes))
	announcing := func(size uint64) []byte { return append(binary.AppendUvarint(nil, size), good[2:]...) }
	for name, tc := range map[string]struct {
		packing string
		data    []byte
		want    error
	}{
		"unknown packing":    {"zstd", good, errUnknownPacking},
		"empty":              {packingS2, nil, s2.ErrCorrupt},
		"truncated":          {packingS2, good[:len(good)-1], s2.ErrCorrupt},
		"announces 10 GiB":   {packingS2, announcing(10 << 30), s2.ErrCorrupt}, // more than the format allows
		"announces 3 GiB":    {packingS2, announcing(3 << 30), errTooLarge},
		"above the maximum":  {packingS2, announcing(maxPackBytes + 1), errTooLarge},
		"announces one more": {packingS2, announcing(minPackBytes + 1), s2.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := unpack(tc.packing, tc.data)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %d bytes, error %v; want error %v", len(got), err, tc.want)
			}
		})
	}
}

// TestPackingIsInTheChecksum: a reader that ignores the packing, such as an older version,
// or gets a message without the header, does not accept it as the next message.
func TestPackingIsInTheChecksum(t *testing.T) {
	t.Parallel()
	r := record{seq: 2, epoch: 1, index: 1, part: 1, parts: 1, packing: packingS2, data: []byte("packed")}
	r.sum = r.sumAfter(7)
	got, err := parseRecord(2, r.message("s", "").Header, r.data)
	if err != nil || got.packing != packingS2 || got.sumAfter(7) != r.sum {
		t.Fatalf("got %+v, error %v; want the record that was written", got, err)
	}
	header := r.message("s", "").Header
	header.Del(headPacking)
	header.Del(headCheck) // which an older version ignores
	if got, err = parseRecord(2, header, r.data); err != nil || got.sumAfter(7) == r.sum {
		t.Errorf("without the header: got %+v, error %v; want another checksum", got, err)
	}
}

// FuzzRecord decodes arbitrary messages: no header and no data causes a panic or allocates
// more memory than a batch may have.
func FuzzRecord(f *testing.F) {
	good, _ := pack(events(minPackBytes))
	f.Add("1", "1", "ff", "1/2", packingS2, "", good)
	f.Add("1", "0", "0", "", "", "00", []byte(nil))
	f.Add("1", "2", "0", "2/1", "zstd", "", binary.AppendUvarint(nil, 10<<30))
	f.Fuzz(func(t *testing.T, epoch, index, sum, part, packing, log string, data []byte) {
		h := nats.Header{
			headEpoch: {epoch}, headIndex: {index}, headSum: {sum}, headPart: {part},
			headPacking: {packing}, headLog: {log},
		}
		r, err := parseRecord(1, h, data)
		if err != nil {
			return
		}
		r.sumAfter(0)
		batch, err := unpack(r.packing, r.data)
		if err == nil && len(batch) > max(maxPackBytes, len(data)) {
			t.Errorf("got %d bytes of %d, want at most %d", len(batch), len(data), maxPackBytes)
		}
		if err == nil && r.packing != "" && r.packing != packingS2 {
			t.Errorf("got a batch of packing %q, want an error", r.packing)
		}
	})
}

// BenchmarkPack packs and unpacks batches of the size of commit batches.
func BenchmarkPack(b *testing.B) {
	for _, kind := range []struct {
		name string
		make func(int) []byte
	}{{"events", events}, {"random", noise}} {
		for _, size := range []int{4, 64, 256, 1024} {
			batch := kind.make(size << 10)
			data, packing := pack(batch)
			perKiB := func(b *testing.B, before time.Duration) {
				b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N*size), "cpu-ns/KiB")
			}
			b.Run(fmt.Sprintf("%s/KiB=%d/pack", kind.name, size), func(b *testing.B) {
				b.ReportAllocs()
				used := cpuTime()
				for b.Loop() {
					pack(batch)
				}
				perKiB(b, used)
				b.ReportMetric(float64(len(batch))/float64(len(data)), "times-smaller")
			})
			if packing == "" {
				continue
			}
			b.Run(fmt.Sprintf("%s/KiB=%d/unpack", kind.name, size), func(b *testing.B) {
				b.ReportAllocs()
				used := cpuTime()
				for b.Loop() {
					if _, err := unpack(packing, data); err != nil {
						b.Fatal(err)
					}
				}
				perKiB(b, used)
			})
		}
	}
}
