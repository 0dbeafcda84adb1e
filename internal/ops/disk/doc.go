// Package disk owns the free space of the file system of the data directory: how much there
// is, and a reserve for the operations that must work when the disk is full. The stores of
// clusters keep their own reserve (storage/pebble) and reject messages long before this one
// is needed. Package datadir owns the directory itself.
//
// # Locks
//
//	lock         protects
//	Reserve.mu   the reserve file and its size
//
// Reserve.mu is held during file operations, never during a call of another package.
package disk
