package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// acceptPause is how long a port waits that cannot accept at the moment, as one without
// file descriptors.
const acceptPause = 50 * time.Millisecond

// turnAway resets connections to a port as soon as they are made, until the function is
// called that it returns. A client of the stream protocol then asks another member; left
// in the backlog of one that starts, it would wait as long as that takes, and without a
// majority that is for ever.
func turnAway(port *net.TCPListener) (end func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := port.AcceptTCP()
			switch {
			case err == nil:
				_ = conn.SetLinger(0) // it is reset, and not as if all had been said
				_ = conn.Close()
			case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
				return
			default:
				<-time.After(acceptPause)
			}
		}
	}()
	return sync.OnceFunc(func() {
		_ = port.SetDeadline(time.Unix(1, 0)) // a port that is closed accepts nothing either
		<-ended
		_ = port.SetDeadline(time.Time{})
	})
}
