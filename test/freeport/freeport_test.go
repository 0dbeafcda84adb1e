package freeport

import (
	"net"
	"sync"
	"testing"
)

// TestAddressesAreUnique checks that no port is returned twice and that every port is free.
func TestAddressesAreUnique(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			list, err := Addresses(t.Context(), 50)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, address := range list {
				if seen[address] {
					t.Errorf("%s was returned twice", address)
				}
				seen[address] = true
				listener, err := net.Listen("tcp", address)
				if err != nil {
					t.Error(err)
					continue
				}
				defer func() { _ = listener.Close() }()
			}
		})
	}
	all.Wait()
	if len(seen) != 1000 {
		t.Errorf("got %d addresses, want 1000", len(seen))
	}
}
