package identity

import (
	"fmt"
	"io/fs"
	"os"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/fileowner"
)

// replaceFile atomically replaces the file at path with a complete, synced one. The new
// file has the owner and mode of the file like, because root may rotate the keys of a
// server that runs as another user.
func replaceFile(path string, data []byte, like string) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, data, func(f *os.File) error { return copyOwnerAndMode(f, info) })
}

// copyOwnerAndMode sets the owner and the mode of a new file to those of another.
func copyOwnerAndMode(f *os.File, like fs.FileInfo) error {
	if uid, gid, ok := fileowner.Of(like); ok {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		myUID, myGID, known := fileowner.Of(info)
		if !known || myUID != uid || myGID != gid {
			if err := f.Chown(uid, gid); err != nil {
				return fmt.Errorf("setting the owner of the file (run this as root or as the server's user): %w", err)
			}
		}
	}
	return f.Chmod(like.Mode().Perm())
}
