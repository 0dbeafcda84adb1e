package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/protobuf/proto"
)

// The raft log of a seed begins after entries that never existed. A member that joins without data
// therefore receives the whole store, and not entries that it would apply to an empty store.
const (
	seedIndex = 1000
	seedTerm  = 2
)

// Seed creates the directory of the first member of a new ensemble from a snapshot. The other
// members must start without data and with Ensemble.Existing: they copy everything from this member
// and cannot form an ensemble without it. Revisions continue after the last one of the snapshot.
func Seed(snapshot, dir string, g *Ensemble) (err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on files that it cannot read
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			err = fmt.Errorf("creating the etcd data of member %s from the snapshot %s: %w", g.Self, snapshot, err)
		}
	}()
	folder := filepath.Join(dir, "member", "snap")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	db := filepath.Join(folder, "db")
	if err := copyVerified(snapshot, db); err != nil {
		return err
	}
	if err := clearMembership(db, nil); err != nil {
		return err
	}
	urls, err := types.NewURLsMap(g.initialCluster())
	if err != nil {
		return err
	}
	log := zap.NewNop().WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	cluster, err := membership.NewClusterFromURLsMap(log, g.ID, urls)
	if err != nil {
		return err
	}
	if cluster.MemberByName(g.Self) == nil {
		return fmt.Errorf("member %q is not in the ensemble", g.Self)
	}
	state := writeMembership(log, db, cluster)
	if err := reserveSegment(dir); err != nil {
		return err
	}
	if err := writeLog(log, filepath.Join(dir, "member", "wal"), cluster, g.Self, state); err != nil {
		return err
	}
	return recordClose(dir)
}

// clearMembership removes from a store the identity of its member and cluster, and the member's
// position in its raft log. The bucket and key names are those of etcd's storage schema. then, if
// not nil, makes further changes in the same transaction.
func clearMembership(path string, then func(meta, revisions *bbolt.Bucket) error) (err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"members", "members_removed", "cluster"} {
			if err := tx.DeleteBucket([]byte(name)); err != nil && !errors.Is(err, berrors.ErrBucketNotFound) {
				return err
			}
		}
		meta, revisions := tx.Bucket([]byte("meta")), tx.Bucket([]byte("key"))
		if meta == nil || revisions == nil {
			return errors.New("file is not an etcd store")
		}
		for _, key := range []string{"consistent_index", "term", "confState"} {
			if err := meta.Delete([]byte(key)); err != nil {
				return err
			}
		}
		if then == nil {
			return nil
		}
		return then(meta, revisions)
	})
}

// writeMembership writes the members of an ensemble into a store.
func writeMembership(log *zap.Logger, path string, cluster *membership.RaftCluster) *raftpb.ConfState {
	store := backend.NewDefaultBackend(log, path)
	members := schema.NewMembershipBackend(log, store)
	members.MustCreateBackendBuckets()
	// A joining member requests the cluster version before a majority exists that could agree on
	// one.
	members.MustSaveClusterVersionToBackend(semver.New(version.Cluster(version.Version) + ".0"))
	state := &raftpb.ConfState{}
	for _, id := range cluster.MemberIDs() {
		members.MustSaveMemberToBackend(cluster.Member(id))
		state.Voters = append(state.Voters, uint64(id))
	}
	tx := store.BatchTx()
	tx.LockOutsideApply()
	schema.UnsafeCreateMetaBucket(tx)
	schema.UnsafeUpdateConsistentIndexForce(tx, seedIndex, seedTerm)
	schema.MustUnsafeSaveConfStateToBackend(log, tx, state)
	tx.Unlock()
	store.ForceCommit()
	if err := store.Close(); err != nil {
		panic(err) // Seed turns the panic into an error
	}
	return state
}

// writeLog creates the raft log of a member that has everything up to seedIndex.
func writeLog(log *zap.Logger, dir string, cluster *membership.RaftCluster, self string,
	state *raftpb.ConfState,
) error {
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{
		NodeID: proto.Uint64(uint64(cluster.MemberByName(self).ID)), ClusterID: proto.Uint64(uint64(cluster.ID())),
	})
	if err != nil {
		return err
	}
	w, err := wal.Create(log, dir, metadata)
	if err != nil {
		return err
	}
	err = w.Save(&raftpb.HardState{Term: proto.Uint64(seedTerm), Commit: proto.Uint64(seedIndex)}, nil)
	if err == nil {
		err = w.SaveSnapshot(&walpb.Snapshot{
			Index: proto.Uint64(seedIndex), Term: proto.Uint64(seedTerm),
			ConfState: state,
		})
	}
	return errors.Join(err, w.Close())
}
