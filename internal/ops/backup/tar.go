package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"freshet/internal/base/errs"
)

// WriteTar writes a backup of a staged copy as a tar stream. The manifest is its last
// file, so that a truncated stream has none.
func WriteTar(ctx context.Context, staged string, to io.Writer, opts Options) error {
	m, err := newManifest(staged, opts)
	if err != nil {
		return err
	}
	out, progress := tar.NewWriter(to), newTracker(m, opts.Progress)
	for i := range m.Files {
		f := &m.Files[i]
		if err := addFile(ctx, out, filepath.Join(staged, filepath.FromSlash(f.Path)), f, m); err != nil {
			return fmt.Errorf("writing %s of the backup: %w", f.Path, err)
		}
		progress.add(f.Size, false)
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	err = out.WriteHeader(header(ManifestFile, int64(len(text)), m))
	if err == nil {
		_, err = out.Write(text)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return nil
}

func header(name string, size int64, m *Manifest) *tar.Header {
	return &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: fileMode, ModTime: m.Created,
		Format: tar.FormatPAX,
	}
}

func addFile(ctx context.Context, out *tar.Writer, from string, f *File, m *Manifest) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	if err := out.WriteHeader(header(f.Path, f.Size, m)); err != nil {
		return err
	}
	f.SHA256, _, err = copySummed(ctx, out, in)
	return err
}

// readTar calls take for the files of a tar stream, compares them with the manifest of
// the stream, and returns the manifest. The manifest is the last file, so only the last call of
// report has the totals.
func readTar(ctx context.Context, from io.Reader, report func(Progress),
	take func(name string, r io.Reader) (sum string, size int64, err error),
) (*Manifest, error) {
	in, progress := tar.NewReader(from), newTracker(&Manifest{}, report)
	entries := map[string]File{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil, errs.New(errs.Invalid, "stream is not a complete backup: it ends without a "+ManifestFile)
		}
		if err != nil {
			return nil, errs.Newf(errs.Invalid, "stream is not a complete backup: %w", err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(filepath.FromSlash(h.Name)) {
			return nil, errs.Newf(errs.Invalid,
				"stream is not a backup: entry %q is not a regular file with a local path", h.Name)
		}
		if h.Name == ManifestFile {
			break
		}
		if _, twice := entries[h.Name]; twice {
			return nil, errs.Newf(errs.Invalid, "stream is not a backup: entry %q occurs twice", h.Name)
		}
		f := File{Path: h.Name}
		if f.SHA256, f.Size, err = take(h.Name, in); err != nil {
			return nil, fmt.Errorf("reading %s of the backup: %w", h.Name, err)
		}
		entries[h.Name] = f
		progress.add(f.Size, false)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	m, err := decode(in)
	if err != nil {
		return nil, err
	}
	progress.end(m)
	var problems []string
	for _, f := range m.Files {
		got, ok := entries[f.Path]
		delete(entries, f.Path)
		problems = append(problems, difference(f, got.SHA256, got.Size, ok)...)
	}
	for name := range entries {
		problems = append(problems, name+" is not in the manifest")
	}
	return m, damagedError(problems)
}

// difference returns how a file differs from the manifest; nil if it does not.
func difference(f File, sum string, size int64, there bool) []string {
	switch {
	case !there:
		return []string{f.Path + " is missing"}
	case size != f.Size:
		return []string{fmt.Sprintf("%s has %d bytes instead of %d", f.Path, size, f.Size)}
	case sum != f.SHA256:
		return []string{f.Path + " has another checksum"}
	}
	return nil
}

const maxProblems = 10

// damagedError returns an error with the problems of a backup; nil if there are none.
func damagedError(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	more := ""
	if len(problems) > maxProblems {
		more = fmt.Sprintf("\n… and %d more", len(problems)-maxProblems)
		problems = problems[:maxProblems]
	}
	return errs.Newf(errs.Invalid, "backup is damaged; use another one:\n%s%s", strings.Join(problems, "\n"), more)
}

// openTar opens a tar stream in a file; - is standard input.
func openTar(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, errs.Newf(errs.NotFound, "%w", err)
	}
	magic := make([]byte, 512)
	if _, err := io.ReadFull(file, magic); err != nil || !bytes.HasPrefix(magic[257:], []byte("ustar")) {
		_ = file.Close() // read only
		return nil, errs.Newf(errs.Invalid, "%s is neither the directory nor the tar stream of a backup", path)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
