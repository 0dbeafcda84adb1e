package listen

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// acceptPause is the backoff after a failed accept, for example without free file descriptors.
const acceptPause = 50 * time.Millisecond

// ResetConnections resets new connections to a port until the returned function is called. A Kafka
// client then connects to another member. In the backlog of a starting member it would wait
// until the member is ready, and without a majority forever.
func ResetConnections(port *net.TCPListener) (end func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := port.AcceptTCP()
			switch {
			case err == nil:
				_ = conn.SetLinger(0) // close with RST, so that the client retries another member
				_ = conn.Close()
			case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
				return
			default:
				<-time.After(acceptPause)
			}
		}
	}()
	return sync.OnceFunc(func() {
		_ = port.SetDeadline(time.Unix(1, 0)) // fails only if the port is closed, which also ends the loop
		<-ended
		_ = port.SetDeadline(time.Time{})
	})
}
