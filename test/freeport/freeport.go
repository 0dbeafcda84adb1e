// Package freeport finds ports for the servers that tests start: test/testserver,
// test/cluster/chaos and tests that start one by hand.
//
// A server is told its port before it listens there, and meanwhile somebody else could
// take it. So ports are below those that the system gives to outgoing connections, and
// each is kept for the process that found it until that ends: two tests, or two members
// of one group, never get the same.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The system gives ports from 32,768 on to outgoing connections, unless it is told
// otherwise. Browsers refuse to speak HTTP on 10,080, and on none above it here.
const lowest, highest = 10_100, 32_000

// kept holds what keeps the ports of this process. It ends with it, so nothing is ever
// taken out; what cannot be reached would be closed by the collector.
var kept struct {
	sync.Mutex
	locks []net.Listener
}

// Addresses finds n addresses on loopback.
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
			continue // somebody listens there
		}
		_ = listener.Close() // only its address was wanted
		if keep(ctx, port) {
			found = append(found, address)
		}
	}
	return nil, fmt.Errorf("found %d of %d free ports on loopback", len(found), n)
}

// keep takes a name that one process can have, and that is gone with it: a socket of the
// kernel's own name space, which leaves no file. It is false when somebody else has it.
func keep(ctx context.Context, port string) bool {
	lock, err := (&net.ListenConfig{}).Listen(ctx, "unix", "@freshet-test-port-"+port)
	if err != nil {
		return false
	}
	kept.Lock()
	defer kept.Unlock()
	kept.locks = append(kept.locks, lock)
	return true
}
