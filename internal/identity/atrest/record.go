package atrest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
	"freshet/internal/base/privatefile"
	"freshet/internal/identity"
)

// Count returns the number of stored secrets of each encryption key, by the key's id. prefix is
// the prefix of all data in etcd.
func Count(ctx context.Context, etcd *clientv3.Client, prefix string) (map[string]int, error) {
	counts := map[string]int{}
	return counts, each(ctx, etcd, prefix+"/", func(_ string, value []byte, _ int64) {
		if id := identity.SealedWith(value); id != "" {
			counts[id]++
		}
	})
}

// each calls visit for every key with a prefix, in pages.
func each(ctx context.Context, etcd *clientv3.Client, prefix string,
	visit func(key string, value []byte, revision int64),
) error {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		page, err := etcd.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(resealPage))
		if err != nil {
			return fmt.Errorf("reading the stored resources: %w", err)
		}
		for _, kv := range page.Kvs {
			visit(string(kv.Key), kv.Value, kv.ModRevision)
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// Record contains the number of secrets of each key after the last resealing, and the
// active key at that time, which encrypts all later writes.
type Record struct {
	Active string         `json:"active"`
	Sealed map[string]int `json:"sealed"`
}

// RecordFile is the name of the Record in the data directory.
const RecordFile = "encryption.sealed"

func (r *Record) write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return privatefile.Write(path, append(text, '\n'))
}

// ReadRecord returns the counts in the Record of a running server. It returns an error if the
// server has not yet sealed every secret with the active key.
func ReadRecord(path, active string) (map[string]int, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the record of sealed secrets: %w", err)
	}
	var record Record
	if err != nil || json.Unmarshal(text, &record) != nil || record.Active != active {
		return nil, errs.Newf(errs.Unavailable, "running server has not yet sealed every secret with the active key "+
			"%s; wait until its log reports it, and try again", active)
	}
	return record.Sealed, nil
}
