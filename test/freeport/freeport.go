// Package freeport finds free ports for the servers that tests start: test/testserver,
// test/ensemble/chaos and tests that start a server themselves.
//
// A server receives its port before it listens on it, and in the meantime another process
// could take the port. So ports are below the range that the system uses for outgoing
// connections, and each is reserved for this process until the process exits: two tests,
// or two members of one ensemble, never get the same port.
//
// The mutex of reservations protects the list of its sockets.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// By default, the system uses ports from 32,768 for outgoing connections. Browsers block
// HTTP on port 10,080 and on no higher port of this range.
const lowest, highest = 10_100, 32_000

// reservations holds the reservations of this process. They are never removed: the process's exit
// releases them. The reference keeps the garbage collector from closing the sockets.
var reservations struct {
	sync.Mutex
	locks []net.Listener
}

// Addresses returns n free addresses on loopback.
func Addresses(ctx context.Context, n int) ([]string, error) {
	var found []string
	for range 1000 {
		if len(found) == n {
			return found, nil
		}
		port := strconv.Itoa(lowest + rand.IntN(highest-lowest))
		address := net.JoinHostPort("127.0.0.1", port)
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			continue // another process uses the port
		}
		_ = listener.Close() // only its address is used
		if reserve(ctx, port) {
			found = append(found, address)
		}
	}
	return nil, fmt.Errorf("only %d of %d free ports found on loopback", len(found), n)
}

// reserve reserves a port by listening on an abstract unix socket with the port in its name.
// Only one process can do that, and the kernel removes the socket when the process exits.
// It returns false if the port is already reserved.
func reserve(ctx context.Context, port string) bool {
	lock, err := (&net.ListenConfig{}).Listen(ctx, "unix", "@freshet-test-port-"+port)
	if err != nil {
		return false
	}
	reservations.Lock()
	defer reservations.Unlock()
	reservations.locks = append(reservations.locks, lock)
	return true
}
