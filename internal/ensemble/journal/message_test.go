package journal

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"freshet/internal/storage/engine"
)

// TestMessageBytes compares encoded messages with those of earlier versions, which streams contain. It
// is not parallel, because TestCloseEndsCalls looks for goroutines of this package.
func TestMessageBytes(t *testing.T) {
	id := [idBytes]byte{1, 2, 3}
	records := encodeRecords(id, 300, [][]byte{[]byte("one"), {}, []byte("three")})
	snapshot := encodeSnapshot(id, 301, []byte(`{"id":"x"}`))
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{records, "017201020300000000000000000000000000ac0203036f6e6500057468726565343108ad"},
		{snapshot, "017301020300000000000000000000000000ad02007b226964223a2278227d383423f0"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	m, err := decode(7, records)
	if err != nil || m.id != id || m.first != 300 || m.last() != 302 {
		t.Fatalf("got %+v, %v", m, err)
	}
	var got []string
	err = m.records(300, func(_ uint64, record []byte) error {
		got = append(got, string(record))
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"", "three"}) {
		t.Errorf("records after 300: got %q, %v", got, err)
	}
	m.body = m.body[:len(m.body)-1]
	if err := m.records(0, func(uint64, []byte) error { return nil }); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("a record without its end: got %v, want %v", err, engine.ErrCorrupt)
	}
}
