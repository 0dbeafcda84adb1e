package fileowner

import "io/fs"

// Of returns the user and the group of a file; ok is false if they are not known, as always on Windows.
func Of(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }
