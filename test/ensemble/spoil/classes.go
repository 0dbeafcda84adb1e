// Package spoil damages files of a member's data directory, as failing disks and file systems do:
// it flips a bit, cuts the end off, zeroes a page, or deletes the file. A class is a kind of file;
// Find lists its files in a live directory, so that a class whose layout changes is reported as
// absent and not tested in silence. A seed determines which file is damaged and where.
//
// The package knows names of files and nothing about servers. Packages chaos and damage use it.
package spoil

import (
	"path/filepath"
	"slices"
	"strings"
)

// Class is a kind of file of a member's data directory.
type Class struct {
	// Name identifies the class in reports.
	Name string
	// Globs are patterns below the data directory.
	Globs []string
}

const (
	streams  = "log/jetstream/$G/streams/"
	raft     = "log/jetstream/$SYS/_js_/"
	group    = raft + "S-*/"
	meta     = raft + "_meta_/"
	shard    = "clusters/*/shard-[0-9]*/"
	snapshot = "snapshots/*"
)

// Classes returns all classes, from the replicated logs up to the files of the whole member.
func Classes() []Class {
	return []Class{
		{"log-block", []string{streams + "S_*/msgs/*.blk"}},
		{"journal-block", []string{streams + "J_*/msgs/*.blk"}},
		{"stream-index", []string{streams + "*/msgs/index.db"}},
		{"stream-meta", []string{streams + "*/meta.inf"}},
		{"stream-sum", []string{streams + "*/meta.sum"}},
		{"consumer-state", []string{streams + "*/obs/*/*"}},
		{"raft-log", []string{group + "msgs/*.blk"}},
		{"raft-index", []string{group + "msgs/index.db"}},
		{"raft-snapshot", []string{group + snapshot}},
		{"raft-vote", []string{group + "tav.idx"}},
		{"raft-peers", []string{group + "peers.idx"}},
		{"raft-meta", []string{group + "meta.inf", group + "meta.sum"}},
		{"meta-log", []string{meta + "msgs/*.blk"}},
		{"meta-index", []string{meta + "msgs/index.db"}},
		{"meta-snapshot", []string{meta + snapshot}},
		{"meta-vote", []string{meta + "tav.idx"}},
		{"meta-peers", []string{meta + "peers.idx"}},
		{"meta-meta", []string{meta + "meta.inf", meta + "meta.sum"}},
		{"etcd-log", []string{"etcd/member/wal/*.wal"}},
		{"etcd-snapshot", []string{"etcd/member/snap/*.snap"}},
		{"etcd-db", []string{"etcd/member/snap/db"}},
		{"table", []string{shard + "*.sst"}},
		{"manifest", []string{shard + "MANIFEST-*"}},
		{"marker", []string{shard + "marker.*"}},
		{"options", []string{shard + "OPTIONS-*"}},
		{"shard-log", []string{shard + "*.log"}},
		{"closed", []string{shard + "CLOSED", "etcd/CLOSED"}},
		{"checkpoint", []string{"clusters/*/shard-*-checkpoints/*/*"}},
		{"journal-copy", []string{"clusters/*/journal-copies/*.copy"}},
		{"parts", []string{"integrity/parts.json"}},
		{"format", []string{"FORMAT"}},
		{"encryption-key", []string{"encryption.key"}},
		{"sealed-keys", []string{"encryption.sealed"}},
		{"tls", []string{"tls/*"}},
		{"bundle", []string{"members/*"}},
		{"admin-token", []string{"admin.token"}},
		{"admin-account", []string{"admin.json"}},
	}
}

// Find returns the files of the class in a data directory, sorted by name.
func (c Class) Find(dir string) []string {
	var found []string
	for _, pattern := range c.Globs {
		// The directory of a test has no characters that a pattern interprets.
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			panic(err) // the patterns are constant and valid
		}
		for _, file := range files {
			if base := filepath.Base(file); base != "LOCK" && !strings.HasSuffix(base, ".tmp") {
				found = append(found, file)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
