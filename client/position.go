package client

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Position is a position in a topic: Earliest, Latest, Newest, AtTime, AtID or AfterID. The zero value
// is Latest.
type Position struct {
	word   string
	newest int
	time   time.Time
	id     string
	after  bool
}

// The end and the start of a topic.
var (
	// Latest is after the last message.
	Latest = Position{word: "latest"}
	// Earliest is the first stored message.
	Earliest = Position{word: "earliest"}
)

// Newest is the newest messages of a topic, at most 1,000, and at least the newest one of each partition. It is for
// Tail, TailFilter and Read only.
func Newest(messages int) Position { return Position{newest: messages} }

// AtTime is the first message that was published at this time or later.
func AtTime(at time.Time) Position { return Position{time: at} }

// AtID is the message with this id, in either form.
func AtID(id string) Position { return Position{id: id} }

// AfterID is after the message with this id, in either form.
func AfterID(id string) Position { return Position{id: id, after: true} }

// ParsePosition parses latest, earliest, a message id, an RFC 3339 time, or a duration before
// now.
func ParsePosition(text string) (Position, error) {
	switch text {
	case "", "latest":
		return Latest, nil
	case "earliest":
		return Earliest, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return AtTime(at), nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return AtTime(time.Now().Add(-ago)), nil
	}
	if _, err := parseID(text); err == nil {
		return AtID(text), nil
	}
	return Position{}, fmt.Errorf("%q is not a position; use earliest, latest, a time such as 2026-01-31T12:00:00Z, a "+
		"duration such as 1h, or a message id", text)
}

// creates reports whether a subscription can be created at the position with one call.
func (p Position) creates() bool { return p.time.IsZero() && !p.after }

// errNewest rejects Newest for a subscription or a consumer group.
var errNewest = errors.New("position Newest is for Tail, TailFilter and Read")

// body returns the position in JSON. The position must not be a time.
func (p Position) body() (map[string]any, error) {
	if p.newest != 0 {
		return nil, errNewest
	}
	if p.id == "" {
		return map[string]any{"position": cmp.Or(p.word, Latest.word)}, nil
	}
	id, err := parseID(p.id)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"ledgerId": id.ledger, "entryId": id.entry, "partitionIndex": id.partition, "isExcluded": p.after,
	}, nil
}

// messageID is the position of a message, which both forms of an id contain.
type messageID struct{ ledger, entry, partition int64 }

var errID = errors.New("not a message id; it has the form ledger:entry:partition:batch, or is that in base64")

// parseID reads an id in string form or in base64 of Pulsar's MessageIdData
// (docs/spec/messages.md#message-ids).
func parseID(text string) (messageID, error) {
	id := messageID{partition: -1}
	if strings.Contains(text, ":") {
		parts := strings.Split(text, ":")
		if len(parts) > 4 {
			return id, errID
		}
		into := []*int64{&id.ledger, &id.entry, &id.partition, new(int64)}
		for i, part := range parts {
			n, err := strconv.ParseInt(part, 10, 64)
			if err != nil {
				return id, errID
			}
			*into[i] = n
		}
		return id, nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return id, errID
	}
	seen := false
	for len(raw) > 0 {
		tag, n := binary.Uvarint(raw)
		if n <= 0 || tag&7 != 0 { // all fields are varints
			return id, errID
		}
		raw = raw[n:]
		value, n := binary.Uvarint(raw)
		if n <= 0 {
			return id, errID
		}
		raw = raw[n:]
		if value > math.MaxInt64 {
			return id, errID
		}
		switch tag >> 3 {
		case 1:
			id.ledger, seen = int64(value), true
		case 2:
			id.entry = int64(value)
		case 3:
			id.partition = int64(value)
		}
	}
	if !seen {
		return id, errID
	}
	return id, nil
}
