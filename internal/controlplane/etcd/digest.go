package etcd

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// Digest summarizes the content of etcd at a revision, so that it can be compared with a copy.
type Digest struct {
	Keys     int    `json:"keys"`
	Revision int64  `json:"revision"`
	Sum      string `json:"sum"` // of all keys, values and revisions
}

const digestPageSize = 500

// TakeDigest reads everything in etcd and passes each key to visit.
func TakeDigest(ctx context.Context, client *clientv3.Client, visit func(kv *mvccpb.KeyValue) error) (Digest, error) {
	all := map[string][sha256.Size]byte{}
	from, revision := "\x00", int64(0)
	for {
		page, err := client.Get(ctx, from, clientv3.WithFromKey(), clientv3.WithLimit(digestPageSize),
			clientv3.WithRev(revision))
		if err != nil {
			return Digest{}, fmt.Errorf("reading the keys of etcd: %w", err)
		}
		if revision == 0 {
			revision = page.Header.Revision
		}
		for _, kv := range page.Kvs {
			all[string(kv.Key)] = sumKey(kv)
			if err := visit(kv); err != nil {
				return Digest{}, err
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return newDigest(all, revision), nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// TakeDigestStopped reads the directory of a stopped member whose store contains everything that is in
// its log, as Seed and Restore create them.
func TakeDigestStopped(dir string, revision int64) (_ Digest, err error) {
	path := filepath.Join(dir, "member", "snap", "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		return Digest{}, fmt.Errorf("reading %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	all := map[string][sha256.Size]byte{}
	err = db.View(func(tx *bbolt.Tx) error {
		revisions := tx.Bucket([]byte("key"))
		if revisions == nil {
			return errors.New("file is not an etcd store")
		}
		return revisions.ForEach(func(key, value []byte) error {
			tooShort := len(key) < len(revisionKey(0))
			if tooShort || int64(binary.BigEndian.Uint64(key)) > revision { //nolint:gosec // positive
				return nil
			}
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(value, &kv); err != nil {
				return err
			}
			if len(key) > len(revisionKey(0)) { // a deletion
				delete(all, string(kv.Key))
			} else {
				all[string(kv.Key)] = sumKey(&kv)
			}
			return nil
		})
	})
	if err != nil {
		return Digest{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return newDigest(all, revision), nil
}

func sumKey(kv *mvccpb.KeyValue) [sha256.Size]byte {
	hash := sha256.New()
	// Writing to a hash never fails.
	_, _ = fmt.Fprintln(hash, kv.CreateRevision, kv.ModRevision, kv.Version, len(kv.Key), len(kv.Value))
	hash.Write(kv.Key)
	hash.Write(kv.Value)
	return [sha256.Size]byte(hash.Sum(nil))
}

func newDigest(all map[string][sha256.Size]byte, revision int64) Digest {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		sum := all[key]
		hash.Write(sum[:])
	}
	return Digest{Keys: len(all), Revision: revision, Sum: hex.EncodeToString(hash.Sum(nil)[:8])}
}
