//go:build race

package pebble

// Under the race detector the suite is CI's: many more crash histories.
const crashHistories = 10_000
