package ensemble

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

// Seed describes a cluster that is imported from another server
// (docs/adr/0033-migration-into-an-ensemble.md).
type Seed struct {
	Shards   []replicated.Seed
	Members  []string // all members, in the order of the configuration
	Copies   int      // number of members that should have a copy, as in the cluster's spec; 0 when unset
	Member   string   // the member that has the data
	Journals []string // names of the journals in its dataplane.JournalsDir
}

// seededJournals is the value of a cluster's journals key until the journals are imported.
type seededJournals struct {
	Member   string   `json:"member"`
	Journals []string `json:"journals"`
}

// SeedKeys returns the initial keys and values of a cluster in etcd.
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
		of, err := replicated.SeedKeys(base, uid, i, seed, s.Members, copiesOrDefault(s.Copies), s.Member)
		if err != nil {
			return nil, err
		}
		maps.Copy(keys, of)
	}
	return keys, nil
}

// importJournals imports the journals in this member's store into the journals that all members
// share. No member opens the cluster before that is done.
func (g *Ensemble) importJournals(ctx context.Context, uid string, to *journal.Journals) error {
	key := g.key("shards/" + uid + "/journals")
	folder := filepath.Join(g.opts.Clusters, filepath.Base(uid), dataplane.JournalsDir)
	found, err := g.opts.Etcd.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading the journals to import from etcd: %w", err)
	}
	if len(found.Kvs) == 0 {
		return os.RemoveAll(folder) // a crash may have left it
	}
	var seed seededJournals
	if err := json.Unmarshal(found.Kvs[0].Value, &seed); err != nil {
		return fmt.Errorf("decoding the journals to import: %w", err)
	}
	if seed.Member != g.opts.Self {
		return errs.Newf(errs.Unavailable, "cluster was moved into the ensemble with member %q, which must import "+
			"its catalogue and schemas first; make sure that this member runs", seed.Member)
	}
	if err := copyJournals(ctx, folder, seed.Journals, to); err != nil {
		return fmt.Errorf("importing the cluster's catalogue and schemas into the ensemble: %w", err)
	}
	if _, err := g.opts.Etcd.Delete(ctx, key); err != nil {
		return fmt.Errorf("storing that the journals are imported: %w", err)
	}
	g.opts.Logger.Info("imported the catalogue and schemas of a cluster into the ensemble",
		slog.String("cluster", uid))
	return os.RemoveAll(folder)
}

// copyJournals copies journals from a store.
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
