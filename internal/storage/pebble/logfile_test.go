package pebble

import (
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// reservations records how much space a log preallocates.
type reservations struct {
	vfs.File
	taken int64
	calls int
}

func (r *reservations) Preallocate(offset, length int64) error {
	r.taken, r.calls = max(r.taken, offset+length), r.calls+1
	return nil
}

func TestLogTakesSpaceAsItGrows(t *testing.T) {
	t.Parallel()
	file, err := vfs.Default.Create(filepath.Join(t.TempDir(), "000001.log"), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	below := &reservations{File: file}
	log := &logFile{File: below}
	defer log.Close()
	if err := log.Preallocate(0, 70<<20); err != nil || below.taken != 0 {
		t.Errorf("request for 70 MiB: got %d bytes allocated, %v; want none", below.taken, err)
	}
	record := make([]byte, 10<<10)
	for written := 0; written < 64<<20; written += len(record) {
		if _, err := log.Write(record); err != nil {
			t.Fatal(err)
		}
		end := int64(written + len(record))
		if most := end + max(minPreallocate, min(end, maxPreallocate)); below.taken < end || below.taken > most {
			t.Fatalf("%d bytes written: got %d bytes allocated, want between %d and %d", end, below.taken, end, most)
		}
	}
	if below.calls > 20 {
		t.Errorf("64 MiB: got %d allocations, want at most 20", below.calls)
	}
	calls := below.calls
	again := reusedLog(below)
	if _, err := again.Write(record); err != nil || below.calls != calls {
		t.Errorf("reused log: got error %v and %d allocations, want none", err, below.calls-calls)
	}
}
