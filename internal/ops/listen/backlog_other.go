//go:build !linux

package listen

import (
	"errors"
	"net"
)

// dropNewConnections is not supported on this system. Connections in the backlog are reset when the
// server stops.
func dropNewConnections(*net.TCPListener) error { return errors.ErrUnsupported }

func backlog(*net.TCPListener) (int, error) { return 0, errors.ErrUnsupported }
