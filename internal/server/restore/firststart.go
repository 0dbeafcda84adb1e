package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"freshet/internal/base/privatefile"
	"freshet/internal/ops/backup"
)

// restoredFile lists the clusters whose stores were in the backup of a restored data
// directory. A cluster that was created while the backup ran is in the resource store, but
// has no store of its own, so the first start creates an empty one. Any other cluster
// without its store is damaged. The first start removes the file.
const restoredFile = "restored.json"

type restoredClusters struct {
	Clusters []string `json:"clusters"` // by UID
}

// writeRestored writes restoredFile into a folder that is being restored.
func writeRestored(into string) error {
	entries, err := os.ReadDir(filepath.Join(into, backup.ClustersDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list := restoredClusters{Clusters: []string{}}
	for _, e := range entries {
		list.Clusters = append(list.Clusters, e.Name())
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return privatefile.Write(filepath.Join(into, restoredFile), text)
}

// FirstStart reports, until the end of the first start after a restore, which clusters were in the backup. The
// others may have no store.
type FirstStart struct {
	file     string
	inBackup map[string]bool // clusters in the backup; nil if the directory was not restored
	done     atomic.Bool
}

// OpenFirstStart reads which clusters were in the backup of a data directory, if it was restored
// and not started since.
func OpenFirstStart(dir string) (*FirstStart, error) {
	r := &FirstStart{file: filepath.Join(dir, restoredFile)}
	text, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	var list restoredClusters
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.file, err)
	}
	r.inBackup = make(map[string]bool, len(list.Clusters))
	for _, uid := range list.Clusters {
		r.inBackup[uid] = true
	}
	return r, nil
}

// MayHaveNoStore reports whether a cluster may have no store.
func (r *FirstStart) MayHaveNoStore(uid string) bool {
	return r.inBackup != nil && !r.inBackup[uid] && !r.done.Load()
}

// IsFirstStart reports whether the store of a cluster was in the backup and is used for the first time since.
func (r *FirstStart) IsFirstStart(uid string) bool { return r.inBackup[uid] && !r.done.Load() }

// Finish ends the first start. It is called when every cluster is open.
func (r *FirstStart) Finish() error {
	if r.inBackup == nil {
		return nil
	}
	r.done.Store(true)
	if err := os.Remove(r.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ending the first start after a restore: %w", err)
	}
	return nil
}
