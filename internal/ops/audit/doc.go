// Package audit stores audit records: one JSON line per write, administrative call and
// denial, in a rotated file that can be read from its end.
//
// It does not authorize (access does) and does not depend on HTTP: surfaces build the
// records. A Record has no field for a body or other free-form text, so it has no place
// for a secret. In addition, text that looks like a token is removed from the fields
// that callers can influence.
//
// Requests do not wait for the disk. Records go through a bounded queue to one writer
// goroutine. If the queue is full, a caller waits for Options.QueueTimeout; then the record
// is dropped and counted, and the gap is recorded. Until the writer has caught up, later
// callers do not wait. The file is synced every second, at rotation and at close. A crash
// of the process loses the queued records, a crash of the machine also the last second.
//
// Locks:
//
//	Log.readers     semaphore: at most two concurrent readers (Tail)
//	rotatedFile.mu  the names of the files: held while files are renamed, reopened, or
//	                opened for reading
//	Trail.mu        the counters of denials, the summary timer and closed
//
// Log.readers is taken before rotatedFile.mu. Trail.mu is never held while a Log is called.
// The fields of a rotatedFile belong to the writer goroutine of its Log.
package audit
