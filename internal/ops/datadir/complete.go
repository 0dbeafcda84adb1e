package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CheckResourceStore returns an error if a data directory has clusters but no resource store.
// A new store would not contain these clusters, so clients would get 404 for them.
func CheckResourceStore(dir string) error {
	store := filepath.Join(dir, "etcd", "member", "snap", "db")
	if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	clusters := filepath.Join(dir, "clusters")
	if stores, err := filepath.Glob(filepath.Join(clusters, "*")); err == nil && len(stores) > 0 {
		return fmt.Errorf("resource store %s is missing, but %s has %d clusters", store, clusters, len(stores))
	}
	return nil
}
