package etcd_test

import (
	"testing"

	"freshet/internal/resources/etcd"
)

func TestMemberKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "spring", "thaw")
	if got := get(t, dir, "spring"); got != "thaw" {
		t.Errorf("after a restart spring = %q, want thaw", got)
	}
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
