package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"freshet/internal/controlplane/etcd"
	"freshet/test/tally"
)

// TestFaultMemberRunsFull ignores the quota and writes until etcd rejects writes. The member must
// accept deletions, accept writes again once there is space, and have space for small writes when
// it starts full.
func TestFaultMemberRunsFull(t *testing.T) {
	t.Parallel()
	const quota = 8 << 20
	dir := t.TempDir()
	fault := tally.Fault{Name: "etcd itself is full (NOSPACE)", Injected: 1}
	open := func() (*etcd.Member, *clientv3.Client) {
		t.Helper()
		m, err := etcd.Start(t.Context(), dir, etcd.Options{QuotaBytes: quota, Unsafe: true})
		if err != nil {
			t.Fatal(err)
		}
		client, err := m.Endpoints().Client(nil)
		if err != nil {
			t.Fatal(err)
		}
		return m, client
	}
	m, client := open()
	value := strings.Repeat("v", 1<<20)
	key := func(i int) string { return fmt.Sprintf("key-%03d", i) }
	stored := 0
	for ; stored < 200; stored++ {
		_, err := client.Put(t.Context(), key(stored), value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if space := m.Space(); space.AllowsChanges(0) || space.Used < quota {
		t.Errorf("full member: got %+v, want no space for changes", space)
	}
	fault.Checked = stored

	// A restart does not free space, but leaves some for the service's own writes.
	_ = client.Close()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m, client = open()
	defer func() { _ = client.Close(); _ = m.Close() }()
	if _, err := client.Put(t.Context(), "signing-key", "rotated"); err != nil {
		fault.Wrong++
		t.Errorf("a small write after the restart of a full member: %v", err)
	}
	if space := m.Space(); space.AllowsGrowth(0) || space.Exhausted {
		t.Errorf("after the restart: got %+v, want no space for callers and no alarm", space)
	}
	res, err := client.Get(t.Context(), "key-", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	fault.Lost = max(0, stored-int(res.Count)) // rejected writes may have been stored

	if _, err := client.Delete(t.Context(), "key-", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	m.RequestCompaction()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for space := m.Space(); !space.AllowsGrowth(1<<20) || space.File > quota; space = m.Space() {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("no space was freed: %+v", space)
		}
		m.RequestCompaction()
		<-tick.C
	}
	fault.Recovery = time.Since(began)
	if _, err := client.Put(t.Context(), "after", value); err != nil {
		t.Errorf("after everything was deleted: %v", err)
	}
	fault.Record(t)
}
