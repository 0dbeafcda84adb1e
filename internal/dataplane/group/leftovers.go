package group

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A member that is down while a cluster is deleted keeps its folder. Whoever deletes
// the cluster leaves it a note in etcd, gone/<uid>/<member>, and the member removes the
// folder and the note when it is back. Nothing is concluded from what cannot be read
// or is not there: only a note removes a folder.

func (g *Group) gone() string { return g.key("gone/") }

// leaveNotes tells the members that are not live, for when they are back, that a
// cluster is gone.
func (g *Group) leaveNotes(ctx context.Context, uid string, live []string) error {
	for _, member := range g.opts.Members {
		if slices.Contains(live, member) {
			continue
		}
		if _, err := g.opts.Etcd.Put(ctx, g.gone()+uid+"/"+member, ""); err != nil {
			return fmt.Errorf("leaving member %s a note that the cluster is gone: %w", member, err)
		}
	}
	return nil
}

// clearLeftovers removes what this member has of clusters that were deleted while it
// was down.
func (p *Plane) clearLeftovers(ctx context.Context, wanted map[string]string) error {
	g := p.group
	found, err := g.opts.Etcd.Get(ctx, g.gone(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("asking for clusters that were deleted: %w", err)
	}
	for _, kv := range found.Kvs {
		uid, member, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), g.gone()), "/")
		if member != g.opts.Self || uid == "" {
			continue
		}
		if _, runs := wanted[uid]; !runs {
			had := p.Stored(uid)
			if err := p.Release(ctx, uid); err != nil {
				return fmt.Errorf("removing what is left of a cluster that was deleted: %w", err)
			}
			if had {
				g.opts.Logger.Info("what was left of a cluster was removed; it was deleted while this member was down",
					slog.String("cluster", uid))
			}
		}
		if _, err := g.opts.Etcd.Delete(ctx, string(kv.Key)); err != nil {
			return fmt.Errorf("taking a note off: %w", err)
		}
	}
	return nil
}
