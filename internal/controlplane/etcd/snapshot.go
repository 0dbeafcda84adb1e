package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// Snapshot writes a consistent copy of everything in etcd, embedded or external, to a new file. The
// file ends with a checksum, like those of etcdctl.
func Snapshot(ctx context.Context, client *clientv3.Client, path string) error {
	stream, err := client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("requesting a snapshot from etcd: %w", err)
	}
	defer func() { _ = stream.Close() }() // read to its end, or abandoned
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing the etcd snapshot: %w", err)
	}
	_, err = io.Copy(file, stream)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("writing the etcd snapshot: %w", err)
	}
	return nil
}

// Restore creates the directory of an embedded member from a snapshot. The member that starts on it
// has the content of the snapshot, and numbers its next revisions far beyond: a client that has
// seen revisions from after the snapshot gets an error that they are compacted, instead of
// different changes under the same numbers.
func Restore(snapshot, dir string) error {
	folder := filepath.Join(dir, "member", "snap")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("creating the etcd directory: %w", err)
	}
	db := filepath.Join(folder, "db")
	if err := copyVerified(snapshot, db); err != nil {
		return fmt.Errorf("restoring the etcd snapshot %s: %w", snapshot, err)
	}
	if err := resetMember(db); err != nil {
		return fmt.Errorf("restoring the etcd snapshot %s: %w", snapshot, err)
	}
	// A store without a log counts as damaged unless the close record lists its files.
	if err := recordClose(dir); err != nil {
		return fmt.Errorf("restoring the etcd snapshot %s: %w", snapshot, err)
	}
	return nil
}

// copyVerified copies a snapshot without its checksum, and verifies the checksum.
func copyVerified(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	info, err := in.Stat()
	if err != nil {
		return err
	}
	// A store consists of whole pages of at least 512 bytes, so the remainder is the checksum.
	const page = 512
	if info.Size() <= sha256.Size || info.Size()%page != sha256.Size {
		return errors.New("file has no checksum; it is truncated or not a snapshot")
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(out, sum), in, info.Size()-sha256.Size); err != nil {
		return err
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(in, want); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return errors.New("checksum does not match; the file is damaged")
	}
	return out.Sync()
}

// resetMember removes the member's identity from a store. The new member begins a raft log of its
// own; with the old position it would skip its first entries as already applied.
func resetMember(path string) error {
	return clearMembership(path, skipRevisions)
}

// restoredKey is the key that has the first revision of a restored store. The resource API does not
// read it.
const restoredKey = "freshet-restored"

// revisionGap is larger than the number of revisions that a server writes after a backup.
const revisionGap = 1_000_000_000

// skipRevisions writes one revision far beyond the last, and schedules the compaction of everything
// before it.
func skipRevisions(meta, revisions *bbolt.Bucket) error {
	last, _ := revisions.Cursor().Last()
	next := int64(revisionGap)
	if len(last) >= len(revisionKey(0)) {
		next += int64(binary.BigEndian.Uint64(last)) //nolint:gosec // revisions are positive
	}
	value, err := proto.Marshal(&mvccpb.KeyValue{
		Key: []byte(restoredKey), CreateRevision: next, ModRevision: next, Version: 1,
		Value: []byte(time.Now().UTC().Format(time.RFC3339)),
	})
	if err != nil {
		return err
	}
	return errors.Join(revisions.Put(revisionKey(next), value),
		meta.Put([]byte("scheduledCompactRev"), revisionKey(next)))
}

// revisionKey returns the key under which etcd's store keeps a revision.
func revisionKey(revision int64) []byte {
	key := binary.BigEndian.AppendUint64(nil, uint64(revision)) //nolint:gosec // revisions are positive
	return binary.BigEndian.AppendUint64(append(key, '_'), 0)
}
