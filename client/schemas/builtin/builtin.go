// Package builtin holds the Protobuf files that every registry knows and that clients
// therefore never register: google/type and confluent. (google/protobuf is part of the
// language, and of every compiler.) They are declared again here, without comments and
// options, from their public definitions (Apache License 2.0). The server and package
// schemas read the same files.
package builtin

import (
	"embed"
	"io"
	"io/fs"
)

//go:embed google confluent
var files embed.FS

// Open opens the file of an import path; fs.ErrNotExist when there is none.
func Open(path string) (io.ReadCloser, error) { return files.Open(path) }

// Text is the text of the file of an import path.
func Text(path string) (string, error) {
	text, err := files.ReadFile(path)
	return string(text), err
}

// Paths are the import paths, in order.
func Paths() []string {
	var paths []string
	// A walk over what is embedded fails only where visit does.
	_ = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	return paths
}
