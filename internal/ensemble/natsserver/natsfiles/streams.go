package natsfiles

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"
)

const (
	descriptionFile = "meta.inf"
	descriptionSum  = "meta.sum"
	consumersDir    = "obs"
	consumerState   = "o.dat"
)

// description is what this package reads of the description of a stream.
type description struct {
	Created           time.Time
	Subjects          []string          `json:"subjects"`
	Retention         string            `json:"retention"`
	MaxMsgsPerSubject int64             `json:"max_msgs_per_subject"`
	MaxAge            int64             `json:"max_age"`
	DenyDelete        bool              `json:"deny_delete"`
	AllowRollup       bool              `json:"allow_rollup_hdrs"`
	AllowMsgTTL       bool              `json:"allow_msg_ttl"`
	Metadata          map[string]string `json:"metadata"`
}

// isContiguous reports whether no message of the stream can be removed but the first ones: a purge of one
// of several subjects leaves gaps.
func (d *description) isContiguous() bool {
	return len(d.Subjects) == 1 && !strings.ContainsAny(d.Subjects[0], "*>") &&
		d.DenyDelete && !d.AllowRollup && !d.AllowMsgTTL &&
		d.MaxAge == 0 && d.MaxMsgsPerSubject <= 0 && d.Retention == "limits"
}

// description verifies the description of a stream, a group or a consumer, whose checksum has the given
// key. required is set if the server has used the directory, so that the file must exist.
//
// The server writes the description first and its checksum after that, and does not repeat the second
// step after a kill between the two. So the checksum can be missing, and it can be an old one while a
// temporary file is left of the new one.
func (v *verifier) description(path, key string, required bool) (description, error) {
	var d description
	file := filepath.Join(path, descriptionFile)
	data, exists, err := v.read(file)
	if err != nil {
		return d, err
	}
	if !exists || len(data) == 0 {
		if required {
			v.find(file, "file is missing or empty")
		}
		return d, nil
	}
	want := hex.EncodeToString(sum(digest(key), data))
	if err := json.Unmarshal(data, &d); err != nil {
		v.find(file, "cannot be decoded: %v", err)
		return d, nil
	}
	got, exists, err := v.read(filepath.Join(path, descriptionSum))
	if err != nil {
		return d, err
	}
	if exists && string(got) != want && !v.exists(filepath.Join(path, descriptionSum+".tmp")) {
		v.find(file, "does not match the checksum in %s", descriptionSum)
	}
	return d, nil
}

// stream verifies a stream.
func (v *verifier) stream(account, path string) error {
	name := filepath.Base(path)
	v.owner = owner{stream: name}
	var d description
	var err error
	if !v.Sealed {
		if d, err = v.description(path, name, false); err != nil {
			return err
		}
	}
	log, err := v.blocks(path, name, d.isContiguous(), func(record) {})
	if err != nil || v.Sealed {
		return err
	}
	described := v.exists(filepath.Join(path, descriptionFile))
	switch {
	case log.records > 0 && !described:
		v.find(filepath.Join(path, descriptionFile), "file is missing")
	case described && !v.exists(filepath.Join(path, blocksDir)) && !v.exists(filepath.Join(path, newBlocksDir)):
		v.find(filepath.Join(path, blocksDir), "directory with the messages is missing")
	}
	v.report.Streams[account+"/"+name] = Stream{
		First: log.first, Last: max(log.last, log.base), Created: d.Created, Shifted: log.shifted, gaps: log.gaps,
	}
	return v.each(filepath.Join(path, consumersDir), func(consumer string) error { return v.consumer(name, consumer) })
}

// consumer verifies a consumer. Its state has no checksum.
func (v *verifier) consumer(stream, path string) error {
	name := filepath.Base(path)
	state := filepath.Join(path, consumerState)
	// A consumer that is being deleted loses one file after the other.
	if _, err := v.description(path, stream+"/"+name, false); err != nil {
		return err
	}
	data, exists, err := v.read(state)
	if err != nil || !exists {
		return err
	}
	if !isConsumerState(data) {
		v.find(state, "is no state of a consumer")
	}
	return nil
}

// isConsumerState reports whether data begins as the state of a consumer does: two bytes of format and
// four sequences.
func isConsumerState(data []byte) bool {
	const magic, oldest, newest = 22, 1, 2
	if len(data) < 2 || data[0] != magic || data[1] < oldest || data[1] > newest {
		return false
	}
	rest := data[2:]
	for range 4 {
		seq, n := binary.Uvarint(rest)
		if n <= 0 || seq&(1<<63) != 0 {
			return false
		}
		rest = rest[n:]
	}
	return true
}
