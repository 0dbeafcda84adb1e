package command

import "freshet/internal/base/errs"

// ErrNoServer is the error of commands that need the server's code, in a program without it.
var ErrNoServer = errs.New(errs.Precondition,
	"this program is the command line without the server, whose code the command needs; install the program that has "+
		"both, as docs/howto/install.md describes")
