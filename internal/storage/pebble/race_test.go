//go:build race

package pebble

// CI runs the suite with the race detector, and with many more crash histories.
const crashHistories = 10_000
