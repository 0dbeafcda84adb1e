package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"freshet/internal/backup"
	"freshet/internal/config"
)

// restoredFile lists the clusters whose stores were in the backup that a data
// directory was restored from. A cluster that was made while the backup ran is in
// the store of resources and has no store of its own: it may be made anew, where
// any other cluster without its store is damaged.
const restoredFile = "restored.json"

type restoredClusters struct {
	Clusters []string `json:"clusters"` // by UID
}

// writeRestored notes the stores in a folder that is being restored.
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
	return writeSecret(filepath.Join(into, restoredFile), text)
}

// mayLack returns which clusters may have lost their stores; nil for none.
func mayLack(cfg *config.Config) (func(uid string) bool, error) {
	text, err := os.ReadFile(cfg.Path(restoredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nobody restored this directory
	}
	if err != nil {
		return nil, err
	}
	var list restoredClusters
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", cfg.Path(restoredFile), err)
	}
	had := make(map[string]bool, len(list.Clusters))
	for _, uid := range list.Clusters {
		had[uid] = true
	}
	return func(uid string) bool { return !had[uid] }, nil
}
