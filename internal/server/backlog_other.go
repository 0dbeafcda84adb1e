//go:build !linux

package server

import (
	"errors"
	"net"
)

// refuseNew is not supported on this system. Connections in the backlog are reset when the
// server stops.
func refuseNew(*net.TCPListener) error { return errors.ErrUnsupported }

func backlog(*net.TCPListener) (int, error) { return 0, errors.ErrUnsupported }
