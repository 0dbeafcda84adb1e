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

// Snapshot writes a copy of everything that etcd holds at one moment, embedded or
// not, to a new file. The file ends with a checksum, as those of etcdctl do.
func Snapshot(ctx context.Context, client *clientv3.Client, path string) error {
	stream, err := client.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("asking etcd for a snapshot: %w", err)
	}
	defer func() { _ = stream.Close() }() // read to its end, or given up
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing the snapshot of etcd: %w", err)
	}
	_, err = io.Copy(file, stream)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("writing the snapshot of etcd: %w", err)
	}
	return nil
}

// Restore makes the directory of an embedded member out of a snapshot. The member
// that starts on it holds what the snapshot holds, and numbers its next revisions
// far beyond: a client that has seen revisions which came after the snapshot is told
// that these are gone, instead of being sent different ones by the same number.
func Restore(snapshot, dir string) error {
	folder := filepath.Join(dir, "member", "snap")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the etcd directory: %w", err)
	}
	db := filepath.Join(folder, "db")
	if err := copyChecked(snapshot, db); err != nil {
		return fmt.Errorf("restoring the snapshot of etcd %s: %w", snapshot, err)
	}
	if err := forgetMember(db); err != nil {
		return fmt.Errorf("restoring the snapshot of etcd %s: %w", snapshot, err)
	}
	// A store without a log is what is wanted here, and otherwise damage.
	if err := noteClose(dir); err != nil {
		return fmt.Errorf("restoring the snapshot of etcd %s: %w", snapshot, err)
	}
	return nil
}

// copyChecked copies a snapshot without its checksum, and compares that.
func copyChecked(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	info, err := in.Stat()
	if err != nil {
		return err
	}
	// A store is whole pages of at least 512 bytes, so what is over is the checksum.
	const page = 512
	if info.Size() <= sha256.Size || info.Size()%page != sha256.Size {
		return errors.New("the file has no checksum; it was cut off, or is no snapshot")
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
		return errors.New("the checksum does not match; the file is damaged")
	}
	return out.Sync()
}

// forgetMember makes a store one of nobody: the new member begins a raft log of its
// own, and would take its first entries for ones that it has seen.
func forgetMember(path string) error {
	return leaveCluster(path, skipRevisions)
}

// restoreMark is the key that has the first revision of a restored store. It is
// outside of what the resource API reads.
const restoreMark = "freshet-restored"

// skippedRevisions are more than a server writes between a backup and its end.
const skippedRevisions = 1_000_000_000

// skipRevisions writes one revision far beyond the last, and asks for everything
// before it to be compacted.
func skipRevisions(meta, revisions *bbolt.Bucket) error {
	last, _ := revisions.Cursor().Last()
	next := int64(skippedRevisions)
	if len(last) >= len(revisionKey(0)) {
		next += int64(binary.BigEndian.Uint64(last)) //nolint:gosec // revisions are positive
	}
	value, err := proto.Marshal(&mvccpb.KeyValue{
		Key: []byte(restoreMark), CreateRevision: next, ModRevision: next, Version: 1,
		Value: []byte(time.Now().UTC().Format(time.RFC3339)),
	})
	if err != nil {
		return err
	}
	return errors.Join(revisions.Put(revisionKey(next), value),
		meta.Put([]byte("scheduledCompactRev"), revisionKey(next)))
}

// revisionKey is the key that etcd's store keeps a revision under.
func revisionKey(revision int64) []byte {
	key := binary.BigEndian.AppendUint64(nil, uint64(revision)) //nolint:gosec // revisions are positive
	return binary.BigEndian.AppendUint64(append(key, '_'), 0)
}
