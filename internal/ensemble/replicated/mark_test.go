package replicated

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestMark: a mark survives the process, only grows, and a damaged file is an empty or an older
// mark, never a later one.
func TestMark(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cluster", "shard"+MarkSuffix)
	m, err := openMark(path)
	if err != nil || m.position().seq != 0 {
		t.Fatalf("new mark: got %+v and error %v, want an empty one", m.position(), err)
	}
	log := logID{1}
	m.begin(logPosition{log: log, seq: 1, epoch: 1, sum: 5})
	if got := m.position().seq; got != 0 {
		t.Errorf("after an epoch record: got a mark at %d, want none", got)
	}
	for seq := uint64(2); seq < 10; seq++ {
		m.advance(logPosition{log: log, seq: seq, epoch: 1, index: seq - 1, sum: uint32(seq)})
	}
	m.advance(logPosition{log: log, seq: 4, epoch: 1, index: 3, sum: 4})
	last := logPosition{log: log, seq: 9, epoch: 1, index: 8, sum: 9}
	if got := m.position(); got != last {
		t.Errorf("got %+v, want %+v", got, last)
	}
	again, err := openMark(path) // not closed, like a killed process
	if err != nil || again.position() != last {
		t.Fatalf("after a kill: got %+v and error %v, want %+v", again.position(), err, last)
	}
	if e, ok := again.epoch(1); !ok || e != (epochMark{1, 1, 5}) {
		t.Errorf("epoch 1: got %+v, %t; want its record", e, ok)
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 0x10
		wantMark(t, path, damaged, last)
		wantMark(t, path, whole[:at], last)
	}
	m.advance(logPosition{log: logID{2}, seq: 3, epoch: 1, index: 1}) // another log begins again
	if got := m.position(); got.log != (logID{2}) || got.seq != 3 {
		t.Errorf("got %+v, want the position in the new log", got)
	}
	for epoch := range uint64(2 * maxMarkEpochs) {
		m.begin(logPosition{log: logID{2}, seq: 10 + epoch, epoch: 10 + epoch})
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	if again, err = openMark(path); err != nil || len(again.epochs) != maxMarkEpochs {
		t.Errorf("got %d epochs and error %v, want %d", len(again.epochs), err, maxMarkEpochs)
	}
}

// wantMark checks what is read from a damaged file: the last mark, the one before it, or none.
func wantMark(t *testing.T, path string, content []byte, last logPosition) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := openMark(path)
	if err != nil && !errors.Is(err, errDamagedMark) {
		t.Fatal(err)
	}
	if got := m.position(); got != last && got.seq != last.seq-1 && got != (logPosition{}) {
		t.Fatalf("got %+v, want %+v, the one before it, or none", got, last)
	}
}
