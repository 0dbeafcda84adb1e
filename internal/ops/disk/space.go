package disk

import (
	"fmt"
	"path/filepath"
)

// Space returns the size and the free space of the file system of the data directory.
func (r *Reserve) Space() (total, free int64, err error) { return Space(filepath.Dir(r.path)) }

// Space returns the size and the free space of the file system of a directory.
func Space(dir string) (total, free int64, err error) {
	total, free, err = space(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the size of the disk: %w", err)
	}
	return total, free, nil
}
