package etcd_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"freshet/internal/base/cleanclose"
	"freshet/internal/controlplane/etcd"
	"freshet/test/tally"
)

const (
	damageKeys = 40
	pageSize   = 4096
)

// TestFaultDamagedEtcd damages the files of a member. The member must start with all its data, or
// return an error that reports the damage. It must never end the process.
func TestFaultDamagedEtcd(t *testing.T) {
	t.Parallel()
	closed, crashed := filledMember(t)
	rng := rand.New(rand.NewPCG(3, 4))
	flip := func(data []byte) []byte {
		data[rng.IntN(used(data))] ^= 1 << rng.IntN(8)
		return data
	}
	cut := func(data []byte) []byte { return data[:rng.IntN(used(data))] }
	head := func(data []byte) []byte { // flips a bit in a page header, where the library would crash on it
		page := rng.IntN(used(data)/4096 + 1)
		data[min(page*4096+rng.IntN(64), len(data)-1)] ^= 1 << rng.IntN(8)
		return data
	}
	gone := func([]byte) []byte { return nil }
	rounds := 3
	if tally.Long() {
		rounds = 60
	}
	for name, tc := range map[string]struct {
		dir   string
		harms []func([]byte) []byte
	}{
		"after an orderly stop": {closed, []func([]byte) []byte{flip, cut, gone}},
		"after a crash":         {crashed, []func([]byte) []byte{head, gone}},
	} {
		t.Run(name, func(t *testing.T) { // sequential: the cases share the random numbers
			fault := tally.Fault{Name: "damaged etcd file, " + name}
			refused := 0
			for _, file := range filesOf(t, tc.dir) {
				for i := range rounds {
					if name == "after a crash" && !strings.HasSuffix(file, "/db") && i > 0 {
						continue
					}
					dir := t.TempDir()
					if err := os.CopyFS(dir, os.DirFS(tc.dir)); err != nil {
						t.Fatal(err)
					}
					change(t, filepath.Join(dir, file), tc.harms[i%len(tc.harms)])
					fault.Injected++
					began := time.Now()
					if !startDamaged(t, dir, file, &fault) {
						refused++
					}
					fault.Recovery = max(fault.Recovery, time.Since(began))
				}
			}
			if refused == 0 {
				t.Error("every damaged member started, want some to fail")
			}
			fault.Record(t)
		})
	}
}

// TestDamageBeforeStop starts a member whose tree was damaged before it was stopped in order: the record of
// the stop describes the damaged file.
func TestDamageBeforeStop(t *testing.T) {
	t.Parallel()
	dir, _ := filledMember(t)
	const file = "member/snap/db"
	change(t, filepath.Join(dir, file), func(data []byte) []byte {
		for page := 2 * pageSize; page < used(data); page += pageSize { // after the two pages that describe the tree
			clear(data[page : page+16])
		}
		return data
	})
	recordStop(t, dir)
	fault := tally.Fault{Name: "etcd file damaged before an orderly stop", Injected: 1}
	if startDamaged(t, dir, file, &fault) {
		t.Error("got a member that runs, want an error")
	}
	fault.Record(t)
}

// TestDamagedRevision makes the last revision in the tree negative. All keys of the tree are still in order, but etcd
// would end the process.
func TestDamagedRevision(t *testing.T) {
	t.Parallel()
	dir, _ := filledMember(t)
	const file, last = "member/snap/db", 1 + damageKeys // the first change has revision 2
	change(t, filepath.Join(dir, file), func(data []byte) []byte {
		key := append(binary.BigEndian.AppendUint64(nil, last), "_\x00\x00\x00\x00\x00\x00\x00\x00"...)
		damaged := bytes.Clone(key)
		damaged[9] = 0x80
		if !bytes.Contains(data, key) {
			t.Fatalf("tree has no change with revision %d", last)
		}
		return bytes.ReplaceAll(data, key, damaged)
	})
	recordStop(t, dir)
	fault := tally.Fault{Name: "revision in the tree of etcd damaged", Injected: 1}
	if startDamaged(t, dir, file, &fault) {
		t.Error("got a member that runs, want an error")
	}
	fault.Record(t)
}

// recordStop records the files of a member as if it had been stopped in order.
func recordStop(t *testing.T, dir string) {
	t.Helper()
	names := slices.DeleteFunc(filesOf(t, dir), func(name string) bool { return name == cleanclose.Name })
	if err := cleanclose.Write(cleanclose.Dir(dir), names); err != nil {
		t.Fatal(err)
	}
}

// startDamaged starts a member from damaged files, checks its data, and reports whether it started.
func startDamaged(t *testing.T, dir, file string, fault *tally.Fault) bool {
	t.Helper()
	fault.Checked += damageKeys
	const advice = "run the command"
	options := etcd.Options{Unsafe: true, Advice: advice}
	m, err := etcd.Start(t.Context(), dir, options)
	// A busy machine may not start an undamaged member in time.
	for attempt := 1; attempt < 3 && err != nil && strings.Contains(err.Error(), "was not ready within"); attempt++ {
		m, err = etcd.Start(t.Context(), dir, options)
	}
	if err != nil {
		if !errors.Is(err, etcd.ErrDamaged) || !strings.Contains(err.Error(), advice) ||
			!strings.Contains(err.Error(), filepath.Dir(file)) || strings.Contains(err.Error(), "goroutine") {
			fault.Wrong++
			t.Errorf("%s: got %v, want an error that names the file and says what to do", file, err)
		}
		return false
	}
	defer func() { _ = m.Close() }() // closing a damaged member may fail
	client, err := m.Endpoints().Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range damageKeys {
		got, err := client.Get(t.Context(), fmt.Sprint("key-", i))
		for isTimeout(err) { // the machine is busy
			got, err = client.Get(t.Context(), fmt.Sprint("key-", i))
		}
		switch {
		case err != nil:
			t.Fatalf("%s: get: %v", file, err)
		case len(got.Kvs) == 0:
			fault.Lost++
			t.Logf("%s: key %d is missing, but the member started", file, i)
		case string(got.Kvs[0].Value) != value(i):
			fault.Wrong++
			t.Logf("%s: key %d has another value", file, i)
		}
	}
	return true
}

// isTimeout reports whether etcd has not handled a request in time.
func isTimeout(err error) bool {
	return errors.Is(err, rpctypes.ErrTimeout) || errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail) ||
		errors.Is(err, rpctypes.ErrNoLeader)
}

func value(i int) string { return strings.Repeat(fmt.Sprint("value ", i, ";"), 100) }

// filledMember returns the directory of a member that was stopped in order, and a copy taken while
// it ran.
func filledMember(t *testing.T) (closed, crashed string) {
	t.Helper()
	closed, crashed = t.TempDir(), t.TempDir()
	with(t, closed, func(m *etcd.Member) {
		client, err := m.Endpoints().Client(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for i := range damageKeys {
			if _, err := client.Put(t.Context(), fmt.Sprint("key-", i), value(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.CopyFS(crashed, os.DirFS(closed)); err != nil {
			t.Fatal(err)
		}
	})
	return closed, crashed
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".tmp") {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// used returns the length of data without the zeros at its end.
func used(data []byte) int {
	n := len(data)
	for n > 1 && data[n-1] == 0 {
		n--
	}
	return n
}

// change rewrites a file; a nil result of harm removes it.
func change(t *testing.T, path string, damage func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if data = damage(data); data == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
