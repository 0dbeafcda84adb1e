//go:build unix

// Package fileowner reads the owner of a file from its description. Windows has no numbers of users, so nothing is
// known there. The package has no state.
package fileowner

import (
	"io/fs"
	"syscall"
)

// Of returns the user and the group of a file; ok is false if they are not known.
func Of(info fs.FileInfo) (uid, gid int, ok bool) {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(owner.Uid), int(owner.Gid), true
}
