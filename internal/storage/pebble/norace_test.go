//go:build !race

package pebble

const crashHistories = 500
