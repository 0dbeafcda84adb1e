package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// entry is a file or a folder (a name with a slash at the end) of a layer.
type entry struct {
	name  string
	mode  int64
	owner int
	text  []byte
}

// baseLayer has everything except the program: folders, accounts, certificate authorities, licences.
func (in *Input) baseLayer(binary Binary, path string) (v1.Layer, error) {
	licence, err := os.ReadFile(filepath.Join(in.Root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	if binary.Notices != "" {
		notices, err := os.ReadFile(binary.Notices)
		if err != nil {
			return nil, err
		}
		licence = append(append(licence, '\n'), notices...)
	}
	accounts := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nfreshet:x:%d:%d:freshet:%s:/sbin/nologin\n", uid, uid, dataFolder)
	groups := fmt.Sprintf("root:x:0:\nfreshet:x:%d:\n", uid)
	entries := []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, text: []byte(accounts)},
		{name: "etc/group", mode: 0o644, text: []byte(groups)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: authorities()},
		{name: "licences.txt", mode: 0o644, text: licence},
		{name: "tmp/", mode: 0o1777},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: "var/lib/freshet/", mode: 0o700, owner: uid},
	}
	return writeLayer(path, func(w *tar.Writer) error {
		for _, e := range entries {
			if err := e.write(w, in.Time); err != nil {
				return err
			}
		}
		return nil
	})
}

// authorities returns the certificate authorities of Mozilla's root programme, as PEM. Those that are
// trusted only for some certificates are left out, because a PEM file cannot express that.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer does not fail
		}
	}
	return out.Bytes()
}

func (e *entry) write(w *tar.Writer, modified time.Time) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.text)),
		ModTime: modified.UTC(), Format: tar.FormatPAX,
	}
	if strings.HasSuffix(e.name, "/") {
		header.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(e.text)
	return err
}

func (in *Input) programLayer(binary Binary, path string) (v1.Layer, error) {
	return writeLayer(path, func(w *tar.Writer) error {
		return copyFile(w, binary.Path, "freshet", 0o755, in.Time)
	})
}

// writeLayer writes a tar file and returns the layer that is read from it.
func writeLayer(path string, write func(*tar.Writer) error) (v1.Layer, error) {
	if err := writeTar(path, write); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func writeTar(path string, write func(*tar.Writer) error) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	w := tar.NewWriter(out)
	return errors.Join(write(w), w.Close(), out.Close())
}

// copyFile adds a file of this machine.
func copyFile(w *tar.Writer, path, name string, mode int64, modified time.Time) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size(), ModTime: modified.UTC(), Format: tar.FormatPAX,
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// packFolder writes the files of a folder to a tar file, in the order of their names.
func packFolder(folder, path string, modified time.Time) error {
	return writeTar(path, func(w *tar.Writer) error {
		return filepath.WalkDir(folder, func(file string, item fs.DirEntry, err error) error {
			if err != nil || file == folder {
				return err
			}
			relative, err := filepath.Rel(folder, file)
			if err != nil {
				return err
			}
			if item.IsDir() {
				return (&entry{name: filepath.ToSlash(relative) + "/", mode: 0o755}).write(w, modified)
			}
			return copyFile(w, file, filepath.ToSlash(relative), 0o644, modified)
		})
	})
}
