package natsfiles

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"freshet/internal/base/atomicfile"
)

// Floors are what the logs of a directory contained when the running server recorded it. The logs may
// contain more, never less.
//
// Streams have no floor: when a stream cannot follow its log, the server drops its messages and fetches
// them again from the leader, so it legitimately ends earlier for a while.
type Floors struct {
	Groups map[string]GroupFloor `json:"groups"`
}

// GroupFloor is the floor of a Raft group.
type GroupFloor struct {
	// Committed is the last committed entry. Raft never removes a committed entry, but entries after it.
	Committed uint64 `json:"committed"`
	// Term and Peers are those of the files, not those in the server's memory.
	Term  uint64 `json:"term"`
	Peers string `json:"peers"`
}

var table = crc32.MakeTable(crc32.Castagnoli)

// errSum is returned for a file whose checksum does not match.
var errSum = errors.New("file does not match its checksum")

// seal appends a checksum.
func seal(text []byte) []byte { return fmt.Appendf(text, "\n%08x\n", crc32.Checksum(text, table)) }

// unseal verifies and removes the checksum of seal.
func unseal(data []byte) ([]byte, error) {
	const tail = 10
	if len(data) < tail || !slices.Equal(seal(data[:len(data)-tail]), data) {
		return nil, errSum
	}
	return data[:len(data)-tail], nil
}

// WriteFloors stores floors durably.
func WriteFloors(path string, f Floors) error { return writeSealed(path, f) }

// ReadFloors reads floors. It returns empty floors if there is no file.
func ReadFloors(path string) (Floors, error) {
	var f Floors
	err := readSealed(path, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return Floors{}, nil
	}
	return f, err
}

func writeSealed(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, seal(text))
}

func readSealed(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if data, err = unseal(data); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return json.Unmarshal(data, value)
}

// ReadVote reads the term and the peers that a group has on disk: what a floor may contain. Files that
// cannot be read result in zero values.
func ReadVote(dir, group string) (term uint64, peers string) {
	path := filepath.Join(dir, group)
	if data, err := os.ReadFile(filepath.Join(path, voteFile)); err == nil && len(data) >= 8 {
		term = binary.LittleEndian.Uint64(data)
	}
	if data, err := os.ReadFile(filepath.Join(path, peersFile)); err == nil {
		peers, _ = canonicalPeers(data)
	}
	return term, peers
}

// Below returns what is missing of the floors. system is the directory of the Raft groups, for messages.
//
// A group that the meta layer has deleted is not missing.
func (r *Report) Below(f Floors, system string) []Finding {
	var found []Finding
	for name, floor := range f.Groups {
		path := filepath.Join(system, name)
		g := r.Groups[name]
		switch {
		case r.isDeleted(owner{group: name}):
		case g.Last < floor.Committed:
			found = append(found, Finding{File: filepath.Join(path, blocksDir), Problem: fmt.Sprintf(
				"log lost its end: it ends at entry %d and had committed entry %d", g.Last, floor.Committed)})
		case g.Term < floor.Term:
			found = append(found, Finding{File: filepath.Join(path, voteFile), Problem: fmt.Sprintf(
				"has term %d and had term %d", g.Term, floor.Term)})
		case !continuesPeers(floor.Peers, g.Peers):
			found = append(found, Finding{File: filepath.Join(path, peersFile), Problem: fmt.Sprintf(
				"has servers %q and had %q", g.Peers, floor.Peers)})
		}
	}
	return found
}

// metaGroup is the Raft group of the meta layer, which is never deleted.
const metaGroup = "_meta_"

// continuesPeers reports whether the peers of a group are the recorded ones, or these and more, as while
// an ensemble is formed.
func continuesPeers(floor, now string) bool {
	if floor == "" || floor == now {
		return true
	}
	before, after := strings.Fields(floor), strings.Fields(now)
	if len(after) < len(before) || len(after) < 2 || after[0] != fmt.Sprint(len(after)-1) {
		return false
	}
	for _, name := range before[1:] {
		if !slices.Contains(after[1:], name) {
			return false
		}
	}
	return true
}
