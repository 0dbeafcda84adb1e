package natsfiles

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	voteFile     = "tav.idx"
	peersFile    = "peers.idx"
	commitFile   = "commit.idx"
	snapshotsDir = "snapshots"
	snapshotName = "snap.%d.%d" // term and index

	idBytes       = 8  // of the name of a server in Raft messages
	minSnapshot   = 28 // term 8, index 8, length of the peers 4, checksum 8
	entriesHeader = idBytes + 4*8 + 2
	normalEntry   = 0
	purgeStream   = 5 // first byte of the entry that purges a stream
	deleteMessage = 6 // first byte of the entry that removes a message
	maxTermJump   = 1 << 24
)

// group verifies a Raft group.
func (v *verifier) group(path string) error {
	name := filepath.Base(path)
	v.owner = owner{group: name}
	g := Group{}
	if name == metaGroup {
		v.report.meta = newAssignments()
	}
	if err := v.twice(func() error { return v.snapshot(path, name, &g) }); err != nil {
		return err
	}
	var term uint64 // of the last entry
	log, err := v.blocks(path, name, !v.Sealed, func(r record) {
		if len(r.content) >= entriesHeader {
			term = binary.LittleEndian.Uint64(r.content[idBytes:])
		}
		normalEntries(r.content, func(entry []byte) {
			if name == metaGroup {
				v.report.meta.apply(entry)
			}
			g.purges = g.purges || entry[0] == purgeStream || entry[0] == deleteMessage
		})
	})
	if err != nil || v.Sealed {
		return err
	}
	g.Last = max(g.Snapshot, log.last, log.base)
	established := g.Snapshot > 0 || log.records > 0 || log.base > 0
	// The server writes and syncs a snapshot before it removes the entries that the snapshot covers.
	if begin := log.begin(); begin > g.Snapshot {
		v.find(filepath.Join(path, snapshotsDir),
			"log begins after entry %d, and the newest snapshot ends at entry %d: a snapshot or blocks are missing",
			begin, g.Snapshot)
	}
	about, err := v.description(path, name, established)
	if err != nil {
		return err
	}
	if about.Metadata["type"] == "stream" {
		g.Stream = about.Metadata["account"] + "/" + about.Metadata["stream"]
	}
	if err := v.vote(path, &g, term); err != nil {
		return err
	}
	if err := v.peers(path, &g, established); err != nil {
		return err
	}
	v.report.Groups[name] = g
	return v.commit(filepath.Join(path, commitFile), name)
}

// normalEntries calls do with the entries of a record of a Raft log that are for the upper layer.
func normalEntries(entries []byte, do func(entry []byte)) {
	if len(entries) < entriesHeader {
		return
	}
	count := int(binary.LittleEndian.Uint16(entries[entriesHeader-2:]))
	rest := entries[entriesHeader:]
	for range count {
		if len(rest) < 4 {
			return
		}
		length := int(binary.LittleEndian.Uint32(rest))
		if rest = rest[4:]; length > len(rest) {
			return
		}
		if length >= 2 && rest[0] == normalEntry {
			do(rest[1:length])
		}
		rest = rest[length:]
	}
}

// snapshot verifies the newest snapshot of a group. The server removes older ones.
func (v *verifier) snapshot(path, name string, g *Group) error {
	dir := filepath.Join(path, snapshotsDir)
	entries, err := os.ReadDir(filepath.Join(v.dir, dir))
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return err
	}
	var term uint64
	file := ""
	g.Snapshot = 0
	for _, entry := range entries {
		var t, index uint64
		n, err := fmt.Sscanf(entry.Name(), snapshotName, &t, &index)
		if err != nil || n != 2 || entry.Name() != fmt.Sprintf(snapshotName, t, index) {
			continue // a temporary file
		}
		if t > term || t == term && index > g.Snapshot {
			term, g.Snapshot, file = t, index, filepath.Join(dir, entry.Name())
		}
	}
	if file == "" {
		return nil
	}
	data, exists, err := v.read(file)
	if err != nil || !exists {
		return err
	}
	if len(data) < minSnapshot {
		v.find(file, "snapshot has %d bytes, which is too short", len(data))
		return nil
	}
	end := len(data) - sumBytes
	if !bytes.Equal(sum(digest(name), data[:end]), data[end:]) {
		v.find(file, "snapshot does not match its checksum")
		return nil
	}
	le := binary.LittleEndian
	peers := int(le.Uint32(data[16:]))
	if le.Uint64(data) != term || le.Uint64(data[8:]) != g.Snapshot || peers > end-20 {
		v.find(file, "snapshot is of term %d and entry %d, which its name does not say",
			le.Uint64(data), le.Uint64(data[8:]))
		return nil
	}
	if name == metaGroup {
		v.report.meta.load(data[20+peers : end])
	}
	if state, err := server.DecodeStreamState(data[20+peers : end]); err == nil {
		g.snapshotFirst, g.snapshotLast = state.FirstSeq, state.LastSeq
		g.snapshotMessages = state.Msgs
	}
	return nil
}

// vote verifies the file with the term and the vote of a group. The file has no checksum.
func (v *verifier) vote(path string, g *Group, term uint64) error {
	file := filepath.Join(path, voteFile)
	data, exists, err := v.read(file)
	if err != nil || !exists {
		return err
	}
	if len(data) != 8 && (len(data) != 8+idBytes || !isID(data[8:])) {
		v.find(file, "is no term and vote")
		return nil
	}
	g.Term = binary.LittleEndian.Uint64(data)
	if g.Term == 0 || g.Term > term+maxTermJump {
		v.find(file, "has term %d, and the log has term %d", g.Term, term)
	}
	return nil
}

// peers verifies the file with the servers of a group. The file has no checksum.
func (v *verifier) peers(path string, g *Group, established bool) error {
	file := filepath.Join(path, peersFile)
	data, exists, err := v.read(file)
	if err != nil {
		return err
	}
	if !exists {
		if established {
			v.find(file, "file is missing")
		}
		return nil
	}
	var ok bool
	if g.Peers, ok = canonicalPeers(data); !ok {
		v.find(file, "is no list of servers")
	}
	return nil
}

// canonicalPeers returns the number of servers, the state of the domain and the names of a file with
// peers in a form that does not depend on their order.
func canonicalPeers(data []byte) (string, bool) {
	if len(data) < 10 {
		return "", false
	}
	le := binary.LittleEndian
	size, count := le.Uint32(data), le.Uint32(data[4:])
	if count > size || uint64(len(data)) != 10+idBytes*uint64(count) {
		return "", false
	}
	var names []string
	for i := range int(count) {
		id := data[8+idBytes*i : 8+idBytes*(i+1)]
		if !isID(id) {
			return "", false
		}
		names = append(names, string(id))
	}
	extension := le.Uint16(data[len(data)-2:])
	if slices.Sort(names); extension > 2 || len(slices.Compact(slices.Clone(names))) != len(names) {
		return "", false
	}
	return fmt.Sprintf("%d %s", size, strings.Join(names, " ")), true
}

// isID reports whether bytes are the name of a server in Raft messages.
func isID(id []byte) bool {
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// commit verifies the file with the last committed entry of the meta group. It is empty when it is new.
func (v *verifier) commit(file, name string) error {
	data, exists, err := v.read(file)
	if err != nil || !exists || len(data) == 0 {
		return err
	}
	if len(data) != 8+sumBytes || !bytes.Equal(sum(digest(name), data[:8]), data[8:]) {
		v.find(file, "does not match its checksum")
	}
	return nil
}
