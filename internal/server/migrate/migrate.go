// Package migrate brings the data directory of a server that runs alone into a new
// group: it makes the data directory of the group's first member, from which the other
// members get everything when they start (docs/adr/0033-moving-up.md).
//
// It owns the plan, the steps and what is compared at the end. It works on the files of
// stopped servers only, and never changes the directory that it reads. What it makes
// lies in a folder that no server starts with (Folder) until everything is there and
// was compared; a run that was cut short goes on where it ended.
//
//   - checks.go: what is refused before anything is written.
//   - manifest.go: what is done already.
//   - resources.go: etcd. stores.go: messages and journals. publish.go: the other
//     files, and the end.
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

// Folder is in a data directory while something is being moved into it.
const Folder = ".migrating"

// ResultFile is in a data directory that something was moved into: what, and from where.
const ResultFile = "migration.json"

// Report hears how it goes, from one goroutine.
type Report interface {
	// Step is what is being done now.
	Step(text string)
	// Progress is how many bytes of the step are done.
	Progress(done, total int64)
}

// Options say what moves where. Nobody else may use the two data directories.
type Options struct {
	From   string         // data directory of the server that runs alone
	Config *config.Config // of the member
	Report Report
}

// Result is what was moved, and that it was compared.
type Result struct {
	Member   string
	DataDir  string
	Finished time.Time
	Again    bool // it had been finished before
	Etcd     etcd.Survey
	Clusters []Cluster
}

// Cluster is a messaging cluster that was moved.
type Cluster struct {
	UID  string `json:"uid"`
	Name string `json:"name"` // with its organization
	// Copies is how many members are to have a copy, 0 when the cluster does not say.
	Copies int `json:"copies,omitempty"`
	// Seeds are those of its shards.
	Seeds  []replicated.Seed `json:"seeds"`
	After  []byte            `json:"after,omitempty"` // up to where it is copied
	Copied bool              `json:"copied,omitempty"`
	Stores []Store           `json:"stores,omitempty"` // once they were compared
}

// Store is a store that was made, and what is in it.
type Store struct {
	Name          string   `json:"name"`
	Topics        int      `json:"topics"`
	Messages      uint64   `json:"messages"`
	Bytes         int64    `json:"bytes"`
	Subscriptions int      `json:"subscriptions"`
	Journals      []string `json:"journals,omitempty"`
	Records       uint64   `json:"records"` // of journals, and those in their snapshots
	Sum           string   `json:"sum"`
}

// migration is one run.
type migration struct {
	Options
	to      string // the member's data directory
	joining bundle.Joining
	m       *manifest
}

// Run moves everything, or finishes what an earlier run has begun.
func Run(ctx context.Context, o Options) (*Result, error) {
	m := &migration{Options: o, to: o.Config.DataDir}
	if err := m.check(); err != nil {
		return nil, err
	}
	source, err := fingerprint(m.From)
	if err != nil {
		return nil, fmt.Errorf("looking at %s: %w", m.From, err)
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

// work makes everything in the folder.
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
		return fmt.Errorf("copying the audit trail: %w", err)
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

// path is in the folder.
func (m *migration) path(elem ...string) string {
	return filepath.Join(append([]string{m.to, Folder}, elem...)...)
}

// made is what will be in the data directory.
func (m *migration) made(elem ...string) string {
	return m.path(append([]string{"made"}, elem...)...)
}

// sizeOf is how many bytes the files in a folder have.
func sizeOf(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is found later
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			total += info.Size()
		}
		return nil
	})
	return total
}

// errDifferent says that a copy is not what it was made of.
var errDifferent = errors.New("the copy is not what it was made of; nothing was changed: run the command again, and " +
	"freshet check on the old data directory")
