// Package builtin contains the Protobuf files that every registry provides, so that clients do
// not register them: google/type and confluent. (google/protobuf is part of every compiler.)
// They are copies of the public definitions (Apache License 2.0) without comments and options.
// The server and package schemas use the same files.
package builtin

import (
	"embed"
	"io"
	"io/fs"
)

//go:embed google confluent
var files embed.FS

// Open opens the file of an import path. It returns fs.ErrNotExist for other paths.
func Open(path string) (io.ReadCloser, error) { return files.Open(path) }

// Text returns the text of the file of an import path.
func Text(path string) (string, error) {
	text, err := files.ReadFile(path)
	return string(text), err
}

// Paths returns the import paths in lexical order.
func Paths() []string {
	var paths []string
	// A walk over embedded files does not fail.
	_ = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	return paths
}
