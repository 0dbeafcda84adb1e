package pebbletest

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/base/unpacking"
	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// OpenMemoryBudget is OpenMemoryWith with a budget for decoded batches. The caller calls release
// after it has closed the engine.
func OpenMemoryBudget(splitter engine.Splitter,
	budget *unpacking.Budget,
) (e *pebble.Engine, release func(), err error) {
	cache := pebble.NewCache(4<<20, 100, budget)
	e, err = pebble.Open("store", pebble.Options{
		FS: vfs.NewMem(), MemTableBytes: 4 << 20, Splitter: splitter, Cache: cache,
	})
	return e, cache.Close, err
}
