package ensemble

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A member that is down while a cluster is deleted keeps its directory. The deleting member
// stores a key in etcd for it, gone/<uid>/<member>. When the absent member is back, it
// removes the directory and the key. A missing or unreadable spec is no reason to remove a
// directory: only such a key is.

func (g *Ensemble) goneKey() string { return g.key("gone/") }

// recordDeletion stores for each member that is not live that a cluster was deleted.
func (g *Ensemble) recordDeletion(ctx context.Context, uid string, live []string) error {
	for _, member := range g.opts.Members {
		if slices.Contains(live, member) {
			continue
		}
		if _, err := g.opts.Etcd.Put(ctx, g.goneKey()+uid+"/"+member, ""); err != nil {
			return fmt.Errorf("storing for member %q that the cluster was deleted: %w", member, err)
		}
	}
	return nil
}

// removeDeleted removes this member's data of clusters that were deleted while it was down.
func (p *Plane) removeDeleted(ctx context.Context, wanted map[string]string) error {
	g := p.ensemble
	found, err := g.opts.Etcd.Get(ctx, g.goneKey(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("listing clusters that were deleted: %w", err)
	}
	for _, kv := range found.Kvs {
		uid, member, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), g.goneKey()), "/")
		if member != g.opts.Self || uid == "" {
			continue
		}
		if _, runs := wanted[uid]; !runs {
			had := p.Stored(uid)
			if err := p.Release(ctx, uid); err != nil {
				return fmt.Errorf("removing the data of a deleted cluster: %w", err)
			}
			if had {
				g.opts.Logger.Info("removed the data of a cluster that was deleted while this member was down",
					slog.String("cluster", uid))
			}
		}
		if _, err := g.opts.Etcd.Delete(ctx, string(kv.Key)); err != nil {
			return fmt.Errorf("removing the key of a deleted cluster: %w", err)
		}
	}
	return nil
}
