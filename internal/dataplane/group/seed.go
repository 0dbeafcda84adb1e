package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"freshet/internal/base/errs"
	"freshet/internal/dataplane"
	"freshet/internal/ensemble/journal"
	"freshet/internal/ensemble/replicated"
	"freshet/internal/storage/pebble"
)

// Seed is what the members have to know of a cluster that was brought in from
// elsewhere (docs/adr/0033-moving-up.md).
type Seed struct {
	Shards   []replicated.Seed
	Members  []string // all, in the order of the configuration
	Copies   int      // how many of them are to have a copy, as the cluster says; 0 when it does not
	Member   string   // the one that has everything
	Journals []string // those in its dataplane.JournalsFolder
}

// seededJournals is what a cluster's key of journals holds until they are brought in.
type seededJournals struct {
	Member   string   `json:"member"`
	Journals []string `json:"journals"`
}

// SeedKeys are the keys and values in etcd that a cluster begins with.
func SeedKeys(prefix, uid string, s Seed) (map[string]string, error) {
	base := prefix + "/shards/"
	journals, err := json.Marshal(seededJournals{s.Member, s.Journals})
	if err != nil {
		return nil, err
	}
	keys := map[string]string{
		base + uid + "/count":    strconv.Itoa(len(s.Shards)),
		base + uid + "/journals": string(journals),
	}
	for i, seed := range s.Shards {
		of, err := replicated.SeedKeys(base, uid, i, seed, s.Members, copiesOf(s.Copies), s.Member)
		if err != nil {
			return nil, err
		}
		maps.Copy(keys, of)
	}
	return keys, nil
}

// bringIn puts the journals that this member has in a store into those that all members
// share. Nobody opens a cluster before that is done.
func (g *Group) bringIn(ctx context.Context, uid string, to *journal.Journals) error {
	key := g.key("shards/" + uid + "/journals")
	folder := filepath.Join(g.opts.Clusters, filepath.Base(uid), dataplane.JournalsFolder)
	found, err := g.opts.Etcd.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	if len(found.Kvs) == 0 {
		return os.RemoveAll(folder) // which a crash has left, or nobody ever made
	}
	var seed seededJournals
	if err := json.Unmarshal(found.Kvs[0].Value, &seed); err != nil {
		return fmt.Errorf("the journals that are to be brought in, in etcd: %w", err)
	}
	if seed.Member != g.opts.Self {
		return errs.Newf(errs.Unavailable, "the cluster was moved into the group with member %s, which brings in "+
			"its catalogue and schemas first: see that it runs", seed.Member)
	}
	if err := copyJournals(ctx, folder, seed.Journals, to); err != nil {
		return fmt.Errorf("bringing the cluster's catalogue and schemas into the group: %w", err)
	}
	if _, err := g.opts.Etcd.Delete(ctx, key); err != nil {
		return fmt.Errorf("writing down that the journals are there: %w", err)
	}
	g.opts.Logger.Info("the catalogue and schemas of a cluster were brought into the group",
		slog.String("cluster", uid))
	return os.RemoveAll(folder)
}

// copyJournals copies journals out of a store.
func copyJournals(ctx context.Context, folder string, names []string, to *journal.Journals) (err error) {
	store, err := pebble.Open(folder, pebble.Options{MustExist: true, MinFreeBytes: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, name := range names {
		from, err := store.Journal(ctx, name)
		if err != nil {
			return err
		}
		if err := to.Seed(ctx, name, from); err != nil {
			return err
		}
	}
	return nil
}
