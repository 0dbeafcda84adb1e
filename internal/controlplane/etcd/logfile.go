package etcd

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// checkLog reads the write-ahead log of a stopped member, and the snapshot from which the member
// continues. The tree must be intact. The error begins with the name of the damaged file.
func checkLog(dir string) (err error) {
	logs := filepath.Join("member", "wal")
	// The library panics or exits the process on invalid input.
	log := zap.NewNop().WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: reading the log: %v", logs, r)
		}
	}()
	end, err := readSegments(dir, logs)
	if err != nil {
		return err
	}
	snapshots, err := wal.ValidSnapshotEntries(log, filepath.Join(dir, logs))
	if err != nil {
		return fmt.Errorf("%s: %w", logs, err)
	}
	if len(snapshots) == 0 {
		return fmt.Errorf("%s: log has no snapshot record to start from", logs)
	}
	last := snapshots[len(snapshots)-1]
	if _, err = wal.Verify(log, filepath.Join(dir, logs), last); err != nil {
		return fmt.Errorf("%s: %w", logs, err)
	}
	if err := checkSnapshot(dir, last, log); err != nil {
		return err
	}
	applied, err := appliedIndex(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		return fmt.Errorf("member/snap/db: %w", err)
	}
	// The member writes an entry to the log before it applies it to the store.
	if end := max(end, last.GetIndex()); applied > end {
		return fmt.Errorf("%s: log ends with entry %d, but the store contains entry %d: the end of the log is missing",
			logs, end, applied)
	}
	return nil
}

// readSegments reads the segments of the log one by one, to find the damaged one, and returns the
// index of the last entry. It accepts a last segment that ends in the middle of a record, as a
// crash leaves it; wal.Verify decides about that.
func readSegments(dir, logs string) (end uint64, err error) {
	names, err := filepath.Glob(filepath.Join(dir, logs, "*.wal"))
	if err != nil {
		return 0, err
	}
	slices.Sort(names)
	var sum uint32
	for i, path := range names {
		var last uint64
		last, sum, err = readSegment(path, sum)
		if err != nil && (i < len(names)-1 || !errors.Is(err, io.ErrUnexpectedEOF)) {
			return 0, fmt.Errorf("%s: %w", filepath.Join(logs, filepath.Base(path)), err)
		}
		end = max(end, last)
	}
	return end, nil
}

// readSegment reads one segment. sum is the checksum at the end of the one before, 0 for none.
func readSegment(path string, sum uint32) (end uint64, endSum uint32, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = file.Close() }() // opened for reading only
	decoder := wal.NewDecoder(fileutil.NewFileReader(file))
	decoder.UpdateCRC(sum)
	record, first := &walpb.Record{}, true
	for err = decoder.Decode(record); err == nil; err = decoder.Decode(record) {
		switch kind := record.GetType(); {
		case kind == wal.CrcType:
			if before := decoder.LastCRC(); before != 0 && record.GetCrc() != before {
				return end, 0, wal.ErrCRCMismatch
			}
			decoder.UpdateCRC(record.GetCrc())
		case first: // every segment begins with the checksum of the one before
			return end, 0, errors.New("segment does not begin with a checksum")
		case kind == wal.EntryType:
			entry := wal.MustUnmarshalEntry(record.GetData())
			end = max(end, entry.GetIndex())
		}
		first = false
	}
	if errors.Is(err, io.EOF) {
		err = nil
		if first {
			err = errors.New("segment has no records")
		}
	}
	return end, decoder.LastCRC(), err
}

// checkSnapshot reads the snapshot of a log's record. A snapshot that does not exist is no error:
// etcd uses an earlier one and more of the log.
func checkSnapshot(dir string, of *walpb.Snapshot, log *zap.Logger) error {
	name := filepath.Join("member", "snap", fmt.Sprintf("%016x-%016x.snap", of.GetTerm(), of.GetIndex()))
	_, err := snap.Read(log, filepath.Join(dir, name))
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// appliedIndex returns the index of the last log entry that a store contains, 0 if it has none. The
// store must be intact, because bbolt does not check what it reads.
func appliedIndex(path string) (index uint64, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return 0, err
	}
	defer func() { err = cmp.Or(err, db.Close()) }()
	err = db.View(func(tx *bbolt.Tx) error {
		if meta := tx.Bucket([]byte("meta")); meta != nil {
			if value := meta.Get([]byte("consistent_index")); len(value) == 8 {
				index = binary.BigEndian.Uint64(value)
			}
		}
		return nil
	})
	return index, err
}
