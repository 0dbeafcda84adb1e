// Package lograte decides which repetitions of an event are logged, so that a failure that is
// retried many times a minute does not fill the log and hide other lines.
//
// It does not log: callers ask a Limiter for the level of a line, or whether to write it, and log
// with their own logger.
//
// Locks:
//
//	Limiter.mu  the policy and the events of a Limiter; a leaf
package lograte
