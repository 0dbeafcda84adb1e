//go:build !linux

package server

import (
	"errors"
	"net"
)

// refuseNew is not known on this system: connections that nobody has accepted
// when the server stops are reset.
func refuseNew(*net.TCPListener) error { return errors.ErrUnsupported }

func backlog(*net.TCPListener) (int, error) { return 0, errors.ErrUnsupported }
