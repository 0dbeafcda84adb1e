// Package datadir owns the data directory as a whole: the lock against other processes, the
// formats of its files, and whether it is complete. The files themselves belong to the
// packages that write them; package disk reserves space next to them.
//
// # Locks
//
//	lock                 protects
//	Lock (a file lock)   the data directory, against other processes
package datadir
