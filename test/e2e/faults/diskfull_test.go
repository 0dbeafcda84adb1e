package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// diskSize is that of a small disk: etcd's logs alone take half of it.
const diskSize = 384 << 20

// TestFaultDiskFull fills a small disk, from inside and from outside, under a
// running server and before a start. Whatever was acknowledged can be read,
// consumed and deleted all the time, and the server stops when it is told to.
func TestFaultDiskFull(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size="+strconv.Itoa(diskSize)); err != nil {
		t.Skipf("NOT TESTED: a full disk: mounting a small one needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	data := filepath.Join(mount, "data")
	s, err := start(t, data)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	fault := tally.Fault{Name: "disk full"}

	// From inside: messages until they are refused, with something left.
	big := `"` + strings.Repeat("y", 900<<10) + `"`
	must(t, s, http.MethodPut, "/admin/v2/persistent/public/default/big", "")
	must(t, s, http.MethodPut, "/admin/v2/persistent/public/default/big/subscription/reader", "")
	status, text := http.StatusCreated, ""
	for range diskSize / (900 << 10) {
		if status, text = call(t, s, http.MethodPost, "/admin/rest/topics/v1/public/default/big/message", big); status/100 != 2 {
			break
		}
	}
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "disk is nearly full") {
		t.Fatalf("produce on a small disk: got %d %s, want 503 before it is full", status, text)
	}
	if free := available(t, mount); free < 8<<20 {
		t.Errorf("when messages are refused: got %d bytes free, want a reserve", free)
	}
	fault.Injected++
	usable(t, s, &fault)

	// From outside: everything that is left.
	filler := filepath.Join(mount, "filler")
	fillDisk(t, mount, filler)
	fault.Injected++
	usable(t, s, &fault)
	began := time.Now()
	if err := s.Stop(20 * time.Second); err != nil { // 10 s of drain, and 5 s
		t.Errorf("stop on a full disk: got %v, want it within 15 s", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("stop on a full disk: got %s, want at most 15 s", took)
	}

	// A start on a full disk.
	fillDisk(t, mount, filler)
	fault.Injected++
	// Stores that are opened may take what little the reserve gives back before etcd
	// has written; then the start ends with a sentence, and the next one has more.
	if s, err = start(t, data); err != nil && strings.Contains(err.Error(), "ended before it was ready") {
		t.Logf("first start on a full disk: %v", err)
		s, err = start(t, data)
	}
	if err != nil {
		t.Fatalf("start on a full disk: %v", err)
	}
	usable(t, s, &fault)
	// Starting may have given back more than the reserve: logs that are no longer
	// needed.
	free := available(t, mount)
	if status, text := call(t, s, http.MethodPost, topic+"/message", payload(0)); status != http.StatusServiceUnavailable && free < 8<<20 {
		t.Errorf("produce with %d bytes left: got %d %s, want 503", free, status, text)
	}
	must(t, s, http.MethodDelete, "/admin/v2/persistent/public/default/big?force=true", "")
	if n := strings.Count(s.Log(), "flush or compaction failed"); n > 2 {
		t.Errorf("log: got %d lines about the same failure, want one", n)
	}

	// There is room again.
	freed := time.Now()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for status = 0; status/100 != 2; {
		if status, text = call(t, s, http.MethodPost, topic+"/message", payload(messages)); time.Since(freed) > 30*time.Second {
			t.Fatalf("produce with room again: got %d %s, want success", status, text)
		}
	}
	fault.Recovery = time.Since(freed)
	if err := s.Stop(20 * time.Second); err != nil {
		t.Error(err)
	}
	fault.Record(t)
}

// usable reads, consumes and acknowledges.
func usable(t *testing.T, s *testserver.Server, fault *tally.Fault) {
	t.Helper()
	for i := range messages {
		fault.Checked++
		status, text := call(t, s, http.MethodGet, peek+strconv.Itoa(i+1), "")
		if status != http.StatusOK || !strings.Contains(text, payload(i)) {
			fault.Lost++
			t.Logf("message %d on a full disk: got %d %.200s, want it", i, status, text)
		}
	}
	if status, text := call(t, s, http.MethodGet, "/subjects/kept/versions/1", ""); status != http.StatusOK {
		fault.Lost++
		t.Logf("schema on a full disk: got %d %s, want it", status, text)
	}
	consume := "/admin/rest/topics/v1/public/default/big/reader/message"
	status, text := call(t, s, http.MethodPost, consume, `{"timeoutMillis": 0}`)
	if status/100 != 2 {
		fault.Wrong++
		t.Logf("consume on a full disk: got %d %.200s, want a message", status, text)
	}
}

func available(t *testing.T, dir string) int64 {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bavail) * fs.Bsize
}

// fillDisk takes all that is free.
func fillDisk(t *testing.T, mount, name string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 1<<20)
	for size := len(block); size > 0; {
		if _, err := file.Write(block[:size]); err != nil {
			size /= 2
		}
	}
	if free := available(t, mount); free > 64<<10 {
		t.Fatalf("fill the disk: got %d bytes left, want none", free)
	}
}
