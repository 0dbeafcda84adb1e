package etcd

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestCloseEndsWatches closes members whose direct clients watch, with the earlier values, keys that others write.
// etcd would end the process if a watch read the store after the member has closed it.
func TestCloseEndsWatches(t *testing.T) {
	t.Parallel()
	for range 5 {
		m, err := Start(t.Context(), t.TempDir(), Options{Unsafe: true})
		if err != nil {
			t.Fatal(err)
		}
		client := m.Client()
		var watching []clientv3.WatchChan
		for range 20 {
			watching = append(watching, client.Watch(context.Background(), "k", clientv3.WithPrefix(),
				clientv3.WithPrevKV(), clientv3.WithCreatedNotify()))
		}
		for _, w := range watching {
			<-w // it is created
		}
		var ended sync.WaitGroup
		for _, w := range watching {
			ended.Go(func() {
				for range w { // events, until the member ends the watch
				}
			})
		}
		writing, stop := context.WithCancel(t.Context())
		written := make(chan struct{}, 1000)
		var writers sync.WaitGroup
		for writer := range 4 {
			writers.Go(func() {
				for i := 0; writing.Err() == nil; i++ {
					if _, err := client.Put(writing, fmt.Sprint("k", writer, i%3), fmt.Sprint(i)); err != nil {
						return // the member is closed
					}
					select {
					case written <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 100 {
			<-written
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		stop()
		writers.Wait()
		all := make(chan struct{})
		go func() { ended.Wait(); close(all) }()
		select {
		case <-all:
		case <-time.After(time.Minute):
			t.Fatal("got watches that go on after the member is closed, want none")
		}
		_ = client.Close() // after the member, which ends what the client has open
	}
}
