// Package pebbletest opens Pebble engines in memory for tests of packages that use an engine.
// It is not part of the binary.
package pebbletest

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// OpenMemory opens an engine on an empty store in memory. The caller closes it.
func OpenMemory() (*pebble.Engine, error) { return OpenMemoryWith(nil) }

// OpenMemoryWith is OpenMemory with a Splitter, for tests that append batches.
func OpenMemoryWith(splitter engine.Splitter) (*pebble.Engine, error) {
	return pebble.Open("store", pebble.Options{FS: vfs.NewMem(), MemTableBytes: 4 << 20, Splitter: splitter})
}
