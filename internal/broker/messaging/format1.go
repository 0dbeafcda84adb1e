package messaging

import (
	"slices"
	"strconv"
	"strings"
)

// Stores of format 1 had no field for the deduplication key. A message with an idempotency key
// stored that key as its producer; a message whose sequence number had to stay out of deduplication
// had no producer. The actual producer and sequence number were in these properties. The broker
// still reads them and never writes them.
const (
	format1Prefix   = "\x00" // producers' property names cannot start with it
	format1Producer = "\x00producer"
	format1Sequence = "\x00sequence"
)

// readFormat1 restores producer and sequence number of a message of format 1. It does not change
// messages of later formats.
func (m *Message) readFormat1() {
	if strings.HasPrefix(m.Producer, idempotencyKeyPrefix) {
		m.Producer, m.Sequence, m.HasSequence = "", 0, false
	}
	hidden := func(p Property) bool { return strings.HasPrefix(p.Key, format1Prefix) }
	if !slices.ContainsFunc(m.Properties, hidden) {
		return
	}
	for _, p := range m.Properties {
		switch p.Key {
		case format1Producer:
			m.Producer = p.Value
		case format1Sequence:
			if n, err := strconv.ParseUint(p.Value, 10, 64); err == nil {
				m.Sequence, m.HasSequence = n, true
			}
		}
	}
	m.Properties = slices.DeleteFunc(m.Properties, hidden)
}
