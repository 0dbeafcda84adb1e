package messaging

import (
	"slices"
	"strconv"
	"strings"
)

// Stores of format 1 had no field for the deduplication key. A message that was
// deduplicated by its idempotency key had that for its producer, and a message
// that had to keep its number out of deduplication hid its producer; the real
// ones were in these properties. They are still read, and never written.
const (
	format1Hidden   = "\x00" // no property of a producer starts like this
	format1Producer = "\x00producer"
	format1Sequence = "\x00sequence"
)

// readFormat1 puts producer and sequence of a message of format 1 back in their
// places. It leaves later messages alone.
func (m *Message) readFormat1() {
	if strings.HasPrefix(m.Producer, idempotencyKeys) {
		m.Producer, m.Sequence, m.HasSequence = "", 0, false
	}
	hidden := func(p Property) bool { return strings.HasPrefix(p.Key, format1Hidden) }
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
