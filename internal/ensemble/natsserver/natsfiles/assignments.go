package natsfiles

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/klauspost/compress/s2"
)

// assignments are the streams and groups of the meta layer. A stream or a group without an assignment is
// being deleted, so its files may be in any state.
type assignments struct {
	streams map[string]bool   // by name
	groups  map[string]string // the stream of each group
	failed  bool              // an entry could not be decoded
}

// First bytes of the entries of the meta layer.
const (
	assignStream             = 0
	assignConsumer           = 1
	removeStream             = 2
	removeConsumer           = 3
	assignCompressedConsumer = 9
	updateStream             = 11

	maxMetaBytes = 1 << 30 // of a snapshot after decompression
)

// assignment is what this package reads of an assignment.
type assignment struct {
	Stream json.RawMessage `json:"stream"` // the configuration of a stream, or the name of a consumer's stream
	Group  struct {
		Name string `json:"name"`
	} `json:"group"`
	Consumers []assignment
}

// streamName returns the name of the stream that an assignment belongs to.
func (a *assignment) streamName() string {
	var name string
	if json.Unmarshal(a.Stream, &name) == nil {
		return name
	}
	var config struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(a.Stream, &config) // "" for an unknown form
	return config.Name
}

func newAssignments() *assignments {
	return &assignments{streams: map[string]bool{}, groups: map[string]string{}}
}

// assigned reports whether a group has an assignment.
func (a *assignments) assigned(group string) bool {
	stream, ok := a.groups[group]
	return ok && a.streams[stream]
}

// load reads the snapshot of the meta layer, which replaces what was known.
func (a *assignments) load(data []byte) {
	*a = *newAssignments()
	if len(data) == 0 {
		return
	}
	if n, err := s2.DecodedLen(data); err != nil || n > maxMetaBytes {
		a.failed = true
		return
	}
	text, err := s2.Decode(nil, data)
	var streams []assignment
	if err == nil {
		err = json.Unmarshal(text, &streams)
	}
	if err != nil {
		a.failed = true
		return
	}
	for i := range streams {
		name := streams[i].streamName()
		a.streams[name] = true
		a.groups[streams[i].Group.Name] = name
		for _, consumer := range streams[i].Consumers {
			a.groups[consumer.Group.Name] = name
		}
	}
}

// apply reads an entry of the meta layer's log.
func (a *assignments) apply(entry []byte) {
	if len(entry) == 0 {
		return
	}
	kind, text := entry[0], entry[1:]
	switch kind {
	case assignStream, assignConsumer, removeStream, removeConsumer, updateStream:
	case assignCompressedConsumer:
		var err error
		if text, err = io.ReadAll(io.LimitReader(s2.NewReader(bytes.NewReader(text)), maxRecord)); err != nil {
			a.failed = true
			return
		}
	default:
		return
	}
	var found assignment
	if err := json.Unmarshal(text, &found); err != nil {
		a.failed = true
		return
	}
	name := found.streamName()
	switch kind {
	case assignStream, updateStream:
		a.streams[name] = true
		a.groups[found.Group.Name] = name
	case assignConsumer, assignCompressedConsumer:
		a.groups[found.Group.Name] = name
	case removeConsumer:
		delete(a.groups, found.Group.Name)
	case removeStream:
		delete(a.streams, name)
		for group, stream := range a.groups {
			if stream == name {
				delete(a.groups, group)
			}
		}
	}
}
