// Package migrate moves the data of a single server into a new ensemble: it creates the data
// directory of the ensemble's first member, from which the other members copy everything when
// they start (docs/adr/0033-migration-into-an-ensemble.md). Merge does the reverse for a backup of an
// ensemble.
//
// It owns the plan, the steps and the comparison at the end. It only works on the files of
// stopped servers, and never changes the source directory. The new files are in a folder
// (Folder) with which no server starts, until everything is copied and compared. A run that
// was interrupted can be continued. The package has no locks; the caller locks both data
// directories.
//
//   - checks.go: checks before anything is written.
//   - manifest.go: the stored progress.
//   - resources.go: etcd. stores.go: messages and journals. publish.go: the other
//     files, and moving all files into the data directory.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"freshet/internal/config"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/replicated"
)

// Folder exists in a data directory while a migration into it is not finished.
const Folder = ".migrating"

// ResultFile is in the data directory after a migration. It contains the source and the
// results.
const ResultFile = "migration.json"

// Report receives the progress. It is called from one goroutine.
type Report interface {
	// Step reports the current step.
	Step(text string)
	// Progress reports how many bytes of the step are done.
	Progress(done, total int64)
}

// Options are the source and the target. The caller must have locked both data directories.
type Options struct {
	From   string         // data directory of the single server
	Config *config.Config // of the member
	Report Report
}

// Result describes the data that was moved and compared.
type Result struct {
	Member   string
	DataDir  string
	Finished time.Time
	Again    bool // an earlier run had already finished
	Etcd     etcd.Digest
	Clusters []Cluster
}

// Cluster is a messaging cluster that is moved.
type Cluster struct {
	UID  string `json:"uid"`
	Name string `json:"name"` // with its organization
	// Copies is how many members have a copy; 0 if the cluster does not set it.
	Copies int `json:"copies,omitempty"`
	// Seeds are the seeds of its shards.
	Seeds  []replicated.Seed `json:"seeds"`
	After  []byte            `json:"after,omitempty"` // last copied key
	Copied bool              `json:"copied,omitempty"`
	Stores []Store           `json:"stores,omitempty"` // set after they were compared
}

// Store describes the contents of a new store.
type Store struct {
	Name          string   `json:"name"`
	Topics        int      `json:"topics"`
	Messages      uint64   `json:"messages"`
	Bytes         int64    `json:"bytes"`
	Subscriptions int      `json:"subscriptions"`
	Journals      []string `json:"journals,omitempty"`
	Records       uint64   `json:"records"` // of journals, including those in their snapshots
	Sum           string   `json:"sum"`
}

// migration is one call of Run.
type migration struct {
	Options
	to      string // the member's data directory
	joining bundle.JoinConfig
	m       *manifest
}

// Run moves all data, or continues an earlier run.
func Run(ctx context.Context, o Options) (*Result, error) {
	m := &migration{Options: o, to: o.Config.DataDir}
	if err := m.check(); err != nil {
		return nil, err
	}
	source, err := fingerprint(m.From)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", m.From, err)
	}
	if done, err := m.finished(source); done != nil || err != nil {
		return done, err
	}
	if err := m.begin(source); err != nil {
		return nil, err
	}
	if !m.m.Compared {
		if err := m.work(ctx); err != nil {
			return nil, err
		}
	}
	if err := m.publish(); err != nil {
		return nil, err
	}
	return m.result(m.m, false), nil
}

// work copies and compares everything in the folder.
func (m *migration) work(ctx context.Context) error {
	if err := m.resources(ctx); err != nil {
		return err
	}
	for i := range m.m.Clusters {
		c := &m.m.Clusters[i]
		if c.Stores != nil {
			continue
		}
		if err := m.copyCluster(ctx, c, i); err != nil {
			return fmt.Errorf("moving cluster %s: %w", c.Name, err)
		}
		if err := m.compareCluster(ctx, c, i); err != nil {
			return fmt.Errorf("comparing cluster %s: %w", c.Name, err)
		}
	}
	if err := m.copyFiles(); err != nil {
		return fmt.Errorf("copying the audit log: %w", err)
	}
	m.m.Compared = true
	return m.save()
}

func (m *migration) result(of *manifest, again bool) *Result {
	return &Result{
		Member: of.Member, DataDir: m.to, Finished: of.Finished, Again: again, Etcd: of.Etcd,
		Clusters: of.Clusters,
	}
}

// path returns a path in the folder.
func (m *migration) path(elem ...string) string {
	return filepath.Join(append([]string{m.to, Folder}, elem...)...)
}

// newPath returns the path of a file that publish moves into the data directory.
func (m *migration) newPath(elem ...string) string {
	return m.path(append([]string{"made"}, elem...)...)
}

// sizeOf returns the total size of the files in a folder.
func sizeOf(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a later step reports files that cannot be read
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			total += info.Size()
		}
		return nil
	})
	return total
}

// errDifferent means that a copy differs from its source.
var errDifferent = errors.New("copy differs from its source; nothing was changed. Run the command again, and freshet " +
	"check on the old data directory")
