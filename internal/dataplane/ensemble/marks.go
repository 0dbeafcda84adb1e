package ensemble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble/replicated"
	"freshet/internal/ensemble/sharded"
)

// marksTimeout bounds PublishMarks: a member without etcd must not keep the log from the others.
const marksTimeout = 30 * time.Second

// PublishMarks publishes the positions that this member has last acknowledged in the logs of its
// shards. It is called before the member's NATS server starts (replicated.PublishMarks). clusters
// is the directory that contains the clusters' directories, by UID.
func PublishMarks(ctx context.Context, etcd *clientv3.Client, prefix, self, clusters string) error {
	dirs, err := os.ReadDir(clusters)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the clusters of this member: %w", err)
	}
	var files []replicated.MarkFile
	for _, d := range dirs {
		files = append(files, replicated.FindMarks(d.Name(), provision.MaxShards, func(number int) string {
			return filepath.Join(clusters, d.Name(), sharded.ShardDir(number))
		})...)
	}
	ctx, cancel := context.WithTimeout(ctx, marksTimeout)
	defer cancel()
	return replicated.PublishMarks(ctx, etcd, prefix+"/shards/", self, files)
}
