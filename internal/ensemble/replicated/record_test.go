package replicated

import (
	"errors"
	"testing"
)

// TestDamagedHeaders changes each bit of each header of a message: a reader rejects the message, or ignores the
// header. It must not consider the message void, because it would then skip an acknowledged write.
func TestDamagedHeaders(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]record{
		"write": {seq: 11, epoch: 4, index: 6, owner: "a-1", part: 1, parts: 1, packing: packingS2, data: []byte("x")},
		"part":  {seq: 12, epoch: 4, index: 7, owner: "a-1", part: 2, parts: 3, data: []byte("x")},
		"epoch": {seq: 13, epoch: 5, owner: "b-2", part: 1, parts: 1, log: logID{7}.String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.sum = r.sumAfter(7)
			whole := r.message("s", "").Header
			if got, err := parseRecord(r.seq, whole, r.data); err != nil || got.sumAfter(7) != r.sum {
				t.Fatalf("got %+v, error %v; want the message that was written", got, err)
			}
			for key, values := range whole {
				for bit := range 8 * len(values[0]) {
					damaged := []byte(values[0])
					damaged[bit/8] ^= 1 << (bit % 8)
					header := r.message("s", "").Header
					header[key] = []string{string(damaged)}
					got, err := parseRecord(r.seq, header, r.data)
					if err == nil && (got.epoch != r.epoch || got.index != r.index || got.sumAfter(7) != r.sum ||
						got.owner != r.owner || got.sum != r.sum) {
						t.Errorf("header %s changed to %q: got %+v, want an error", key, damaged, got)
					}
					if err != nil && !errors.Is(err, errForeign) && !errors.Is(err, errDamagedMessage) {
						t.Errorf("header %s changed to %q: got error %v", key, damaged, err)
					}
				}
			}
		})
	}
}
