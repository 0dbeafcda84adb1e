package payload

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/s2"
)

// TestPayloads checks the properties that the benchmarks rely on: message size, compression
// ratio of batches of 100, and that all messages differ.
func TestPayloads(t *testing.T) {
	const messages, batch = 20_000, 100
	for _, c := range []struct {
		name        string
		generate    func(*rand.Rand) string
		size        float64
		least, most float64
	}{{"events", Event, Size, 3, 5}, {"random", Random, Size, 0.99, 1}, {"readings", Reading, 100, 1.4, 3}} {
		size, packed, seen := 0, 0, map[string]bool{}
		all := Pool(messages, c.generate)
		for at := 0; at < messages; at += batch {
			text := bytes.Join(all[at:at+batch], nil)
			size += len(text)
			packed += len(s2.Encode(nil, text))
		}
		for _, one := range all {
			seen[string(one)] = true
		}
		mean, ratio := float64(size)/messages, float64(size)/float64(packed)
		t.Logf("%s: %.0f bytes, %.2f times smaller", c.name, mean, ratio)
		if mean < 0.95*c.size || mean > 1.05*c.size {
			t.Errorf("%s: got %.0f bytes, want about %.0f", c.name, mean, c.size)
		}
		if ratio < c.least || ratio > c.most {
			t.Errorf("%s: got %.2f times smaller, want %.2f to %.2f", c.name, ratio, c.least, c.most)
		}
		if len(seen) != messages {
			t.Errorf("%s: got %d different messages, want %d", c.name, len(seen), messages)
		}
	}
}
