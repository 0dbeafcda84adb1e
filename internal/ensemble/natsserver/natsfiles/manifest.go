package natsfiles

import (
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Manifest lists the files of a directory after the server was stopped in good order. A file that is
// missing or has another size since then is damaged, although what is left of it may verify. Files without
// a checksum of their own have one here.
//
// A manifest describes the files as they lie there, with the damage that they may have had already. So an
// unchanged file still has to be verified.
type Manifest struct {
	Files map[string]manifestFile `json:"files"`
}

type manifestFile struct {
	Size int64  `json:"size"`
	Sum  uint32 `json:"sum,omitempty"`
}

// smallFile is the size up to which a manifest has the checksum of a file.
const smallFile = 4 << 10

// WriteManifest stores the manifest of a directory. It must not be called before the server has ended.
func WriteManifest(path, dir string) error {
	files, err := list(dir)
	if err != nil {
		return err
	}
	return writeSealed(path, Manifest{Files: files})
}

// Comparison is the result of comparing a directory with its manifest.
type Comparison struct {
	Stopped  bool // there is a manifest: the server was stopped in good order
	Findings []Finding
}

// CompareManifest compares a directory with its manifest. The caller removes the manifest before it
// starts a server.
//
// A file that is missing or has another size or checksum is a finding: nothing may write to the directory
// while no server runs.
func CompareManifest(path, dir string) (Comparison, error) {
	var m Manifest
	if err := readSealed(path, &m); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errSum) { // a damaged manifest is no manifest
			err = nil
		}
		return Comparison{}, err
	}
	files, err := list(dir)
	if err != nil {
		return Comparison{}, err
	}
	c := Comparison{Stopped: true}
	for name, was := range m.Files {
		if len(c.Findings) == maxFindings {
			break
		}
		is, exists := files[name]
		problem := ""
		switch {
		case !exists:
			problem = "file is missing since the server was stopped"
		case is.Size != was.Size || is.Sum != was.Sum:
			problem = "file has changed since the server was stopped"
		}
		if problem != "" {
			c.Findings = append(c.Findings,
				Finding{File: name, Problem: problem, Derived: filepath.Base(name) == indexFile})
		}
	}
	return c, nil
}

// list describes all files of a directory. A directory that does not exist is empty.
func list(dir string) (map[string]manifestFile, error) {
	files := map[string]manifestFile{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil {
			return err
		}
		if isTemporary(d.Name()) && path != dir {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		file := manifestFile{Size: info.Size()}
		if file.Size <= smallFile {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file.Sum = crc32.Checksum(data, table)
		}
		name, err := filepath.Rel(dir, path)
		files[name] = file
		return err
	})
	return files, err
}

// isTemporary reports whether the server removes a file or directory in the background.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_test_") || name == "__msgs__" ||
		strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".new")
}
