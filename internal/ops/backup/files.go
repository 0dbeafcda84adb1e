package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// walk lists the files below a directory, sorted by path, without the manifest.
func walk(dir string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() { // a link could point anywhere, and root may run this command
			return fmt.Errorf("%s is not a regular file", at)
		}
		name, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); name != ManifestFile {
			files = append(files, File{Path: name, Size: info.Size(), Modified: info.ModTime().UnixNano()})
		}
		return nil
	})
	slices.SortFunc(files, func(a, b File) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return files, err
}

// contextReader is a reader that fails when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// copySummed copies data and returns its checksum and size.
func copySummed(ctx context.Context, to io.Writer, from io.Reader) (sum string, size int64, err error) {
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(to, hash), contextReader{ctx, from})
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// sumFile returns the checksum and size of a file.
func sumFile(ctx context.Context, path string) (sum string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = file.Close() }() // read only
	return copySummed(ctx, io.Discard, file)
}

// copyFile copies a file to a new, synced file.
func copyFile(ctx context.Context, from, to string) (sum string, size int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = in.Close() }() // read only
	return createFile(ctx, to, in)
}

// createFile copies a reader to a new, synced file.
func createFile(ctx context.Context, to string, from io.Reader) (sum string, size int64, err error) {
	if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
		return "", 0, err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return "", 0, err
	}
	sum, size, err = copySummed(ctx, out, from)
	return sum, size, errors.Join(err, out.Sync(), out.Close())
}
