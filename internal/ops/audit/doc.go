// Package audit keeps the record of who did what: one JSON line per write,
// administrative call and denial, in a rotated file, readable from its end.
//
// It does not decide anything (that is access) and does not know HTTP: surfaces
// make a Record of what they know. A Record has no field for a body or any
// other free-form text, so there is no place where a secret belongs; what looks
// like a token in the fields that callers influence is cut out all the same.
//
// Requests do not wait for the disk. Records go through a bounded queue to one
// writer. When the queue is full a caller waits a moment, then the record is
// dropped, counted, and the gap itself recorded; until there is room again
// nobody waits any more. The file is synced every second and at rotation and
// close: a crash of the process loses what was queued, a crash of the machine
// at most the last second too.
package audit
