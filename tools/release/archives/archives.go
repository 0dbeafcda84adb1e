// Package archives packs each program with its completions, man pages and licences: tar.gz, and zip for
// Windows. Order, owners, modes and times of the entries are fixed, so that equal files give equal archives.
package archives

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"freshet/tools/release/plan"
)

// entry is a file of an archive.
type entry struct {
	name string // below the archive's one folder
	path string
	mode os.FileMode
}

// Build writes an archive for each target.
func Build(_ context.Context, p *plan.Plan) error {
	for _, t := range p.Targets {
		entries, err := contents(p, t)
		if err != nil {
			return err
		}
		file := p.Archive(t)
		fmt.Println("packing", filepath.Base(file))
		if err := write(file, entries, p.Time); err != nil {
			return fmt.Errorf("packing %s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

// contents lists the files of a target's archive. Windows has no man pages.
func contents(p *plan.Plan, t plan.Target) ([]entry, error) {
	list := []entry{
		{filepath.Base(p.Binary(t)), p.Binary(t), 0o755},
		{"LICENSE", filepath.Join(p.Root, "LICENSE"), 0o644},
		{"README.md", filepath.Join(p.Root, "README.md"), 0o644},
		{"THIRD-PARTY-NOTICES.txt", p.Notices(t), 0o644},
	}
	folders := []struct{ name, path string }{{"completions", p.Completions()}}
	if t.OS != "windows" {
		folders = append(folders, struct{ name, path string }{"man/man1", p.ManPages()})
	}
	for _, folder := range folders {
		files, err := os.ReadDir(folder.path) // sorted by name
		if err != nil {
			return nil, fmt.Errorf("%w; run the command binaries first", err)
		}
		for _, file := range files {
			list = append(list, entry{folder.name + "/" + file.Name(), filepath.Join(folder.path, file.Name()), 0o644})
		}
	}
	folder := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(p.Archive(t)), ".zip"), ".tar.gz")
	for i := range list {
		list[i].name = folder + "/" + list[i].name
	}
	return list, nil
}

func write(file string, entries []entry, modified time.Time) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	if strings.HasSuffix(file, ".zip") {
		return writeZip(out, entries, modified)
	}
	return writeTar(out, entries, modified)
}

func writeTar(out io.Writer, entries []entry, modified time.Time) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression) // its header has no name and no time
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		info, err := os.Stat(e.path)
		if err != nil {
			return err
		}
		err = archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Size: info.Size(), Mode: int64(e.mode), ModTime: modified,
			Format: tar.FormatUSTAR,
		})
		if err != nil {
			return err
		}
		if err := copyFile(archive, e.path); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func writeZip(out io.Writer, entries []entry, modified time.Time) error {
	archive := zip.NewWriter(out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(e.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if err := copyFile(w, e.path); err != nil {
			return err
		}
	}
	return archive.Close()
}

func copyFile(to io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}
