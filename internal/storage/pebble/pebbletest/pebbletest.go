// Package pebbletest opens Pebble engines for the tests of what stands on an
// engine. It is not part of the binary.
package pebbletest

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"freshet/internal/storage/engine"
	"freshet/internal/storage/pebble"
)

// OpenMemory opens an engine on an empty store in memory. The caller closes it.
func OpenMemory() (*pebble.Engine, error) { return OpenMemoryWith(nil) }

// OpenMemoryWith does the same for tests that append runs.
func OpenMemoryWith(splitter engine.Splitter) (*pebble.Engine, error) {
	return pebble.Open("store", pebble.Options{FS: vfs.NewMem(), MemTableBytes: 4 << 20, Splitter: splitter})
}
