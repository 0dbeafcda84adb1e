package clients_test

import (
	"io/fs"
	"os"
)

// scripts is a folder whose node_modules are hidden.
type scripts struct{ fs.FS }

func withoutModules(folder string) fs.FS { return scripts{os.DirFS(folder)} }

// ReadDir implements fs.ReadDirFS.
func (s scripts) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	kept := entries[:0]
	for _, e := range entries {
		if e.Name() != "node_modules" {
			kept = append(kept, e)
		}
	}
	return kept, err
}
