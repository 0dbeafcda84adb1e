package check

import (
	"os"

	"freshet/internal/config"
	"freshet/internal/server/rejoin"
)

// remedies describe for each part how it is replaced when it is damaged. A member of an ensemble gets
// most parts from the other members, a single server from a backup.
type remedies struct {
	member                                           bool
	format, keys, shared, token, bundle, etcd, store string
}

const (
	automatically = "replaced automatically at the next start, from the other members"
	fromBackup    = "restore it from a backup"
	// auditRemedy is the same everywhere: every server has its own trail.
	auditRemedy  = "not replaced: no other server has these records; the server starts and appends to the log"
	removeFile   = "if no newer version has used the directory, remove the file; the next start writes it again"
	closedRemedy = "written again at the next orderly stop; the next start reads all files instead of comparing them"

	// These parts exist on members only.
	logsRemedy       = automatically + ", as soon as each of them has all logs"
	indexRemedy      = "made again automatically at the next start, from the messages of this member"
	copyRemedy       = "replaced automatically at the next start, from the journal and the copies of the other members"
	markRemedy       = "replaced automatically at the next start, with the position that the ensemble has stored"
	stateRemedy      = "written again while the member runs; this start cannot find logs that have lost their end"
	checkpointRemedy = "not needed: the next start removes the checkpoint"
	registerRemedy   = "written again at the next start, which verifies what the file had recorded"
)

// isMember reports whether a data directory is that of a member of an ensemble. Any file of a bundle shows
// that, because the others can be damaged.
func isMember(cfg *config.Config) bool {
	files, err := os.ReadDir(cfg.BundleDir())
	return cfg.Members.Enabled() || err == nil && len(files) > 0
}

// remediesOf returns the remedies for the data directory of a configuration.
func remediesOf(cfg *config.Config) remedies {
	if !isMember(cfg) {
		return remedies{
			format: removeFile, keys: fromBackup, shared: fromBackup,
			token: "remove the file, and the next start creates a new one",
			etcd:  "restore the data directory from a backup", store: "restore the folder of the cluster from a backup",
		}
	}
	r := remedies{
		member: true, format: removeFile, keys: automatically, shared: automatically, token: automatically,
		bundle: "run: freshet ensemble join BUNDLE --config FILE, with the bundle of this member, or a new one of: " +
			"freshet ensemble replace NAME --only-bundle",
		etcd: rejoin.Advice, store: automatically,
	}
	if cfg.EncryptionKey.File != "" {
		r.keys = "copy the file from another member"
	}
	return r
}
