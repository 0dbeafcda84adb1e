package natsfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"freshet/internal/base/retry"
)

// Finding is a file that does not verify.
type Finding struct {
	// File is relative to the directory that was verified.
	File string
	// Problem is a sentence without a full stop.
	Problem string
	// Derived is set for an index that the server makes again from the blocks when the file is missing.
	Derived bool

	owner owner
}

// owner is the group or the stream that a file belongs to.
type owner struct{ group, stream string }

func (f Finding) Error() string { return f.File + ": " + f.Problem }

// Group is what a Raft group has on disk.
type Group struct {
	Last     uint64 // index of the last entry, in the log or covered by the snapshot
	Snapshot uint64 // index of the newest snapshot; 0 without one
	Term     uint64 // of the file with the vote; 0 without one
	Peers    string // canonical form of the peers; "" without the file
	Stream   string // "account/name" for the group of a stream

	// Messages of the stream that the snapshot describes.
	snapshotFirst, snapshotLast, snapshotMessages uint64

	purges bool // the log contains an entry that removes messages of the stream
}

// Stream is what a stream has on disk.
type Stream struct {
	First, Last uint64
	Created     time.Time
	// Shifted is set if the first block begins with a mark that older messages were removed.
	Shifted bool

	gaps []gap
}

// Report is the result of a verification.
type Report struct {
	Findings []Finding
	Groups   map[string]Group  // by the name of the group
	Streams  map[string]Stream // by "account/name"
	Files    int
	Bytes    int64

	meta *assignments // nil if there is no meta layer
}

// isDeleted reports whether the meta layer has deleted a group or a stream. Its files may then be in any
// state.
func (r *Report) isDeleted(o owner) bool {
	if r.meta == nil || r.meta.failed || o.group == metaGroup {
		return false
	}
	return o.group != "" && !r.meta.assigned(o.group) || o.stream != "" && !r.meta.streams[o.stream]
}

// Damaged returns the findings that the server does not repair automatically.
func (r *Report) Damaged() []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if !f.Derived {
			out = append(out, f)
		}
	}
	return out
}

// Options configure a verification.
type Options struct {
	// BytesPerSecond bounds the rate of reading; 0 means no bound.
	BytesPerSecond int64
	// Stopped is set if the server was stopped in good order, so that no log may end in an incomplete
	// record.
	Stopped bool
	// Sealed verifies only files that a running server does not change: full blocks and snapshots.
	Sealed bool
}

// maxFindings bounds a report. One finding is enough to replace the directory.
const maxFindings = 100

// verifier verifies one directory.
type verifier struct {
	Options
	ctx     context.Context //nolint:containedctx // of one call of Verify
	dir     string
	report  Report
	started time.Time
	buf     []byte // of the last file that was read whole
	owner   owner  // of the files that are being verified
}

// Verify reads all files of a JetStream directory. A directory that does not exist is empty. The error is
// one of reading: damage is in the report.
func Verify(ctx context.Context, dir string, o Options) (*Report, error) {
	v := &verifier{Options: o, ctx: ctx, dir: dir, started: time.Now(), report: Report{
		Groups: map[string]Group{}, Streams: map[string]Stream{},
	}}
	accounts, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, account := range accounts {
		if !account.IsDir() {
			continue
		}
		if err := v.each(filepath.Join(account.Name(), "_js_"), v.group); err != nil {
			return nil, err
		}
		stream := func(path string) error { return v.stream(account.Name(), path) }
		if err := v.each(filepath.Join(account.Name(), "streams"), stream); err != nil {
			return nil, err
		}
	}
	if !v.Sealed {
		v.checkStreams()
		v.report.Findings = slices.DeleteFunc(v.report.Findings, func(f Finding) bool {
			return v.report.isDeleted(f.owner)
		})
	}
	return &v.report, nil
}

// each calls do with the path of every directory in a directory. Directories whose name begins with a
// full stop are being deleted.
func (v *verifier) each(path string, do func(path string) error) error {
	entries, err := os.ReadDir(filepath.Join(v.dir, path))
	if errors.Is(err, fs.ErrNotExist) || v.vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if err := do(filepath.Join(path, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// vanished reports whether an error is due to a running server that removed a file.
func (v *verifier) vanished(err error) bool { return v.Sealed && errors.Is(err, fs.ErrNotExist) }

// find records damage of a file.
func (v *verifier) find(path, problem string, args ...any) {
	if len(v.report.Findings) < maxFindings {
		f := Finding{File: path, Problem: fmt.Sprintf(problem, args...), owner: v.owner}
		v.report.Findings = append(v.report.Findings, f)
	}
}

// findDerived records damage of a file that the server can do without.
func (v *verifier) findDerived(path, problem string) {
	if len(v.report.Findings) < maxFindings {
		f := Finding{File: path, Problem: problem, Derived: true, owner: v.owner}
		v.report.Findings = append(v.report.Findings, f)
	}
}

// twice calls check again after a while if it finds damage and a server is running: the server may have
// changed or removed the file meanwhile. The second result counts.
func (v *verifier) twice(check func() error) error {
	before := len(v.report.Findings)
	err := check()
	if !v.Sealed || err != nil || len(v.report.Findings) == before {
		return err
	}
	v.report.Findings = v.report.Findings[:before]
	if err := retry.Sleep(v.ctx, secondLook); err != nil {
		return err
	}
	return check()
}

// secondLook is the time between two looks at a file that seems to be damaged.
const secondLook = time.Second

// read reads a file whole. The result is valid until the next call.
func (v *verifier) read(path string) (data []byte, exists bool, err error) {
	f, err := os.Open(filepath.Join(v.dir, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if info.Size() > maxFileBytes {
		v.find(path, "has %d bytes, more than any file of the log can have", info.Size())
		return nil, true, nil
	}
	if int64(cap(v.buf)) < info.Size() {
		v.buf = make([]byte, info.Size())
	}
	v.buf = v.buf[:info.Size()]
	n, err := readFull(f, v.buf)
	if err != nil {
		return nil, false, err
	}
	v.report.Files++
	v.report.Bytes += int64(n)
	return v.buf[:n], true, v.pace()
}

// maxFileBytes bounds the memory of a verification. A block has at most 8 MiB and one more message.
const maxFileBytes = 256 << 20

// pace waits as long as the rate of reading is above its bound.
func (v *verifier) pace() error {
	if v.BytesPerSecond <= 0 {
		return v.ctx.Err()
	}
	due := v.started.Add(time.Duration(float64(v.report.Bytes) / float64(v.BytesPerSecond) * float64(time.Second)))
	early := time.Until(due)
	if early <= 0 {
		return v.ctx.Err()
	}
	return retry.Sleep(v.ctx, early)
}

// exists reports whether a file or directory exists.
func (v *verifier) exists(path string) bool {
	_, err := os.Stat(filepath.Join(v.dir, path))
	return err == nil
}

// checkStreams compares the streams with what the snapshots of their groups describe.
func (v *verifier) checkStreams() {
	for name, g := range v.report.Groups {
		s, ok := v.report.Streams[g.Stream]
		if !ok || g.Snapshot == 0 || g.snapshotFirst == 0 || g.snapshotLast < g.snapshotFirst || g.purges {
			continue
		}
		account, stream, _ := strings.Cut(g.Stream, "/")
		v.owner = owner{stream: stream}
		dir := filepath.Join(account, "streams", stream, blocksDir)
		if !s.Shifted && s.First > g.snapshotFirst && s.First <= g.snapshotLast {
			v.find(dir, "blocks are missing: the stream begins at message %d, and at %d in the snapshot of group %s",
				s.First, g.snapshotFirst, name)
		}
		removed := g.snapshotLast - g.snapshotFirst + 1 - g.snapshotMessages
		missing := uint64(0)
		for _, gap := range s.gaps {
			from, to := max(gap.from, g.snapshotFirst), min(gap.to, g.snapshotLast)
			if from <= to {
				missing += to - from + 1
			}
		}
		if len(s.gaps) < maxGaps && missing > removed {
			v.find(dir, "blocks are missing: %d messages are gone, and %d in the snapshot of group %s",
				missing, removed, name)
		}
	}
}
