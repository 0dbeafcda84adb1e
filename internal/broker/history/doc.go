// Package history keeps the statistics of the last 24 hours: for every cluster, and for the
// busiest topics, subscriptions and consumer groups of the server. Its memory is fixed: a series
// is a set of rings of a fixed size, and the number of series is bounded (docs/adr/0068-history.md).
//
// The Recorder samples every 15 seconds and writes a file every few minutes, so that a restart
// leaves only a gap. The file is a convenience: without it the history starts empty. Package
// messaging has the counters, package groups the committed offsets; this package turns counters
// into rates. In an ensemble each member records what it owns, and package dataplane/ensemble adds
// up the answers of all members with Add.
//
// # Locks
//
//	Recorder.mu  the series and their rings. Held for one series at a time, or for a scan of the
//	             series in memory; never over a call of another package.
//
// Only the goroutine of Run uses the state between two samples (sampler, series.before).
package history
