package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/base/errs"
	"freshet/internal/base/version"
)

// storedFormat is the format of the data under the prefix in etcd: the keys, and how values
// are encoded and encrypted.
const storedFormat = 1

// OpenFormat rejects data of a later version in etcd, and writes the format if it is
// missing.
func OpenFormat(ctx context.Context, client *clientv3.Client, prefix string, log *slog.Logger) error {
	key := prefix + "/format"
	found, err := client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading the format of the stored resources: %w", err)
	}
	if len(found.Kvs) > 0 {
		stored, err := strconv.Atoi(string(found.Kvs[0].Value))
		if err != nil {
			return fmt.Errorf("format of the stored resources is %q and not a number: etcd is damaged, or another "+
				"program uses its prefix %s", found.Kvs[0].Value, prefix)
		}
		if stored > storedFormat {
			return errs.Newf(errs.Precondition, "data in etcd %w: its format is %d, but this version reads formats "+
				"up to %d", version.ErrNewer, stored, storedFormat)
		}
		if stored == storedFormat {
			return nil
		}
	}
	_, err = client.Txn(ctx).Then(clientv3.OpPut(key, strconv.Itoa(storedFormat))).Commit()
	if err != nil {
		log.Warn("format of the stored resources could not be written; the next start retries",
			slog.Any("error", err))
	}
	return nil
}
