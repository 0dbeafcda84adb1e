package etcd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/net/http2"
	"golang.org/x/sync/errgroup"

	"freshet/internal/controlplane/etcd"
)

func TestMemberKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "spring", "thaw")
	if got := get(t, dir, "spring"); got != "thaw" {
		t.Errorf("after a restart spring = %q, want thaw", got)
	}
}

// TestSnapshotsComeOften checks that a starting member has few changes to apply again.
func TestSnapshotsComeOften(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	with(t, dir, func(m *etcd.Member) {
		client := clientOf(t, m)
		var writers errgroup.Group
		for writer := range 20 {
			writers.Go(func() error {
				for range 250 { // 5,000 changes in all
					if _, err := client.Put(t.Context(), fmt.Sprint(writer), "thaw"); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := writers.Wait(); err != nil {
			t.Fatal(err)
		}
		// Count before Close, which takes a snapshot in any case.
		if snapshots, err := filepath.Glob(filepath.Join(dir, "member", "snap", "*.snap")); len(snapshots) == 0 ||
			err != nil {
			t.Errorf("after 5,000 changes: got snapshots %v with error %v, want one", snapshots, err)
		}
	})
}

// TestRestoredSnapshot takes a snapshot of a member, changes the data, and starts another member
// from the snapshot. The restored member must have the data of the snapshot, accept writes, keep
// them over a restart, and reject watches from the lost revisions.
func TestRestoredSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second, snapshot := filepath.Join(dir, "first"), filepath.Join(dir, "second"), filepath.Join(dir, "snapshot")
	var revision int64
	with(t, first, func(m *etcd.Member) {
		client := clientOf(t, m)
		for i := range 50 {
			if _, err := client.Put(t.Context(), "spring", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := etcd.Snapshot(t.Context(), client, snapshot); err != nil {
			t.Fatal(err)
		}
		after, err := client.Put(t.Context(), "spring", "after the snapshot")
		if err != nil {
			t.Fatal(err)
		}
		revision = after.Header.Revision
	})
	if err := etcd.Restore(snapshot, second); err != nil {
		t.Fatal(err)
	}
	if got := get(t, second, "spring"); got != "49" {
		t.Errorf("restored: spring = %q, want 49", got)
	}
	with(t, second, func(m *etcd.Member) {
		client := clientOf(t, m)
		written, err := client.Put(t.Context(), "summer", "drought")
		if err != nil {
			t.Fatal(err)
		}
		if got := written.Header.Revision; got <= revision {
			t.Errorf("first write after restoring: got revision %d, want more than %d, which clients may have seen",
				got, revision)
		}
		watch := <-client.Watch(t.Context(), "spring", clientv3.WithRev(revision))
		if err := watch.Err(); !errors.Is(err, rpctypes.ErrCompacted) {
			t.Errorf("watching from revision %d, which was lost: got %v, want %v", revision, err, rpctypes.ErrCompacted)
		}
	})
	if got := get(t, second, "summer"); got != "drought" {
		t.Errorf("after a restart summer = %q, want drought", got)
	}
}

// TestPingsAreNoAbuse checks that a client that pings regularly, as the API machinery does, keeps
// its connection.
func TestPingsAreNoAbuse(t *testing.T) {
	t.Parallel()
	with(t, t.TempDir(), func(m *etcd.Member) {
		conn, err := m.Endpoints().Dialer.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		framer := http2.NewFramer(conn, conn)
		pinged := make(chan error, 1)
		go func() {
			for {
				switch frame, err := framer.ReadFrame(); f := frame.(type) {
				case *http2.PingFrame:
					pinged <- nil
				case *http2.GoAwayFrame:
					pinged <- fmt.Errorf("%s: %s", f.ErrCode, f.DebugData())
					return
				default:
					if err != nil {
						pinged <- err
						return
					}
				}
			}
		}()
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		pause := time.NewTicker(1100 * time.Millisecond)
		defer pause.Stop()
		for i := range 5 {
			if err := framer.WritePing(false, [8]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
			if err := <-pinged; err != nil {
				t.Fatalf("ping %d: got %v, want a response", i, err)
			}
			<-pause.C
		}
	})
}

func TestDamagedSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	snapshot := filepath.Join(dir, "snapshot")
	with(t, filepath.Join(dir, "first"), func(m *etcd.Member) {
		if err := etcd.Snapshot(t.Context(), clientOf(t, m), snapshot); err != nil {
			t.Fatal(err)
		}
	})
	whole, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, text := range map[string][]byte{
		"cut off": whole[:len(whole)/2], "without checksum": whole[:len(whole)-32],
		"one bit changed": flipped, "empty": nil,
	} {
		damaged := filepath.Join(dir, name)
		if err := os.WriteFile(damaged, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := etcd.Restore(damaged, filepath.Join(dir, name+" restored")); err == nil {
			t.Errorf("snapshot that is %s: got no error, want one", name)
		}
	}
}

func clientOf(t *testing.T, m *etcd.Member) *clientv3.Client {
	t.Helper()
	client, err := m.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func put(t *testing.T, dir, key, value string) {
	t.Helper()
	with(t, dir, func(m *etcd.Member) {
		client, err := m.Endpoints().Client(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	})
}

func get(t *testing.T, dir, key string) (value string) {
	t.Helper()
	with(t, dir, func(m *etcd.Member) {
		client, err := m.Endpoints().Client(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		res, err := client.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Kvs) == 1 {
			value = string(res.Kvs[0].Value)
		}
	})
	return value
}

func with(t *testing.T, dir string, use func(*etcd.Member)) {
	t.Helper()
	m, err := etcd.Start(t.Context(), dir, etcd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	use(m)
}
