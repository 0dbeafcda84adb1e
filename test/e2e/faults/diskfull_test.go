package faults

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/test/stamp"
	"freshet/test/tally"
	"freshet/test/testserver"
)

// disk is a small one that a test can fill.
type disk struct {
	kind string // of file system
	size int    // bytes
	long bool   // only when there is time
}

// disks differ in what they do when they are full: tmpfs takes back what it could
// only give in part, ext4 leaves it taken.
var disks = []disk{
	{kind: "tmpfs", size: 384 << 20},
	{kind: "tmpfs", size: 192 << 20, long: true},
	{kind: "ext4", size: 384 << 20, long: true},
}

// TestFaultDiskFull fills a small disk, from inside and from outside, under a
// running server and before a start. Whatever was acknowledged can be read,
// consumed and deleted all the time, and the server stops when it is told to.
func TestFaultDiskFull(t *testing.T) {
	// by itself three quarters of the disk, which may be full before or after that
	t.Setenv("FRESHET_QUOTAS_STORED_BYTES", "10Gi")
	for _, d := range disks {
		t.Run(d.kind+" of "+strconv.Itoa(d.size>>20)+" MiB", func(t *testing.T) {
			if d.long && !tally.Long() {
				t.Skip("NOT TESTED: a full disk of this kind: set FRESHET_LONG=1")
			}
			d.fault(t)
		})
	}
}

func (d disk) fault(t *testing.T) {
	t.Helper()
	mount := d.mount(t)
	data := filepath.Join(mount, "data")
	s, err := start(t, data)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	fault := tally.Fault{Name: "disk full, " + d.kind + " of " + strconv.Itoa(d.size>>20) + " MiB"}

	fillFromInside(t, s, mount, d.size)
	fault.Injected++
	usable(t, s, &fault)

	filler := filepath.Join(mount, "filler")
	fillDisk(t, mount, filler)
	fault.Injected++
	usable(t, s, &fault)
	stopInTime(t, s)

	// Starts on a full disk: after an orderly stop, and after being killed.
	for i := range starts() {
		if i%2 == 1 {
			hollow(t, data)
		}
		fillDisk(t, mount, filler)
		fault.Injected++
		if s, err = start(t, data); err != nil {
			t.Fatalf("start %d on a full disk: %v", i+1, err)
		}
		usable(t, s, &fault)
		if i%2 == 0 {
			stopInTime(t, s)
		} else {
			s.Kill()
		}
	}
	fillDisk(t, mount, filler)
	fault.Injected++
	if s, err = start(t, data); err != nil {
		t.Fatalf("last start on a full disk: %v", err)
	}
	usable(t, s, &fault)
	refused(t, s, mount)
	for _, path := range []string{
		"/admin/v2/persistent/public/default/big/subscription/reader",
		"/admin/v2/persistent/public/default/big?force=true",
		"/subjects/kept/versions/1", "/apis/cloud.vendor.io/v1alpha1/namespaces/default/serviceaccounts/kept",
	} {
		if status, text := call(t, s, http.MethodDelete, path, ""); status/100 != 2 {
			fault.Wrong++
			t.Errorf("delete %s on a full disk: got %d %s, want success", path, status, text)
		}
	}
	if n := strings.Count(s.Log(), "flush or compaction failed"); n > 2 {
		t.Errorf("log: got %d lines about the same failure, want one", n)
	}

	fault.Recovery = recovers(t, s, filler)
	if err := s.Stop(20 * time.Second); err != nil {
		t.Error(err)
	}
	fault.Record(t)
}

// hollow takes the space of what etcd's log has ahead, as when etcd could not take it in
// the first place.
func hollow(t *testing.T, data string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(data, "etcd", "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("log of etcd: got %v, %v; want one", logs, err)
	}
	last := slices.Max(logs)
	text, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	written := len(bytes.TrimRight(text, "\x00"))
	if err := errors.Join(os.Truncate(last, int64(written)), os.Truncate(last, int64(len(text)))); err != nil {
		t.Fatal(err)
	}
}

// starts is how often a server is started on a full disk, in a row.
func starts() int {
	if tally.Long() {
		return 6
	}
	return 2
}

// mount makes the disk and returns where it is.
func (d disk) mount(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var err error
	if d.kind == "tmpfs" {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(d.size))
	} else {
		image := filepath.Join(t.TempDir(), "image")
		err = errors.Join(
			os.WriteFile(image, nil, 0o600), os.Truncate(image, int64(d.size)),
			command(t, "mkfs."+d.kind, "-q", "-m", "0", image), command(t, "mount", "-o", "loop", image, dir))
	}
	if err != nil {
		t.Skipf("NOT TESTED: a full disk: mounting a small one needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func command(t *testing.T, name string, args ...string) error {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// bigTopic is the topic that fills the disk. Its messages begin with a stamp of
// stampSize bytes.
const (
	bigTopic  = "big"
	stampSize = 100
)

// bigRest is what follows the stamp. It compresses well, unlike the filler of a stamp.
var bigRest = strings.Repeat("y", 900<<10)

// fillFromInside produces until messages are refused, which leaves something.
func fillFromInside(t *testing.T, s *testserver.Server, mount string, size int) {
	t.Helper()
	must(t, s, http.MethodPut, "/admin/v2/persistent/public/default/big", "")
	must(t, s, http.MethodPut, "/admin/v2/persistent/public/default/big/subscription/reader", "")
	status, text := http.StatusCreated, ""
	for i := range 4 * size / (900 << 10) { // they become smaller when they are compacted
		big := string(stamp.Make(bigTopic, "filler", i, stampSize)) + bigRest
		if status, text = call(t, s, http.MethodPost, "/admin/rest/topics/v1/public/default/big/message",
			big); status/100 != 2 {
			break
		}
	}
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "disk is nearly full") {
		t.Fatalf("produce on a small disk: got %d %s, want 503 before it is full", status, text)
	}
	if free := available(t, mount); free < 8<<20 {
		t.Errorf("when messages are refused: got %d bytes free, want a reserve", free)
	}
}

// stopInTime has a server stop within the 10 s of its drain time, and 5 s.
func stopInTime(t *testing.T, s *testserver.Server) {
	t.Helper()
	began := time.Now()
	if err := s.Stop(20 * time.Second); err != nil {
		t.Errorf("stop on a full disk: got %v, want it within 15 s", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("stop on a full disk: got %s, want at most 15 s", took)
	}
}

// refused waits until the server, which looks once a second, has seen that the disk
// is full: then it takes no messages.
func refused(t *testing.T, s *testserver.Server, mount string) {
	t.Helper()
	for began := time.Now(); ; {
		status, text := call(t, s, http.MethodPost, topic+"/message", payload(0))
		if status == http.StatusServiceUnavailable && strings.Contains(text, "disk is nearly full") {
			return
		}
		if time.Since(began) > 5*time.Second {
			t.Fatalf("produce with %d bytes left: got %d %s, want 503", available(t, mount), status, text)
		}
	}
}

// recovers removes what fills the disk and waits until messages are taken again.
func recovers(t *testing.T, s *testserver.Server, filler string) time.Duration {
	t.Helper()
	freed := time.Now()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for {
		status, text := call(t, s, http.MethodPost, topic+"/message", payload(messages))
		if status/100 == 2 {
			return time.Since(freed)
		}
		if time.Since(freed) > 30*time.Second {
			t.Fatalf("produce with room again: got %d %s, want success", status, text)
		}
	}
}

// usable reads, consumes and acknowledges.
func usable(t *testing.T, s *testserver.Server, fault *tally.Fault) {
	t.Helper()
	for i := range messages {
		fault.Checked++
		status, text := call(t, s, http.MethodGet, peek+strconv.Itoa(i+1), "")
		if foreign(text, kept) {
			fault.Foreign++
		}
		if status != http.StatusOK || text != payload(i) {
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
	if status == http.StatusOK {
		head, rest := text[:min(len(text), stampSize)], text[min(len(text), stampSize):]
		if foreign(head, bigTopic) {
			fault.Foreign++
		} else if _, err := stamp.Parse([]byte(head)); err != nil || rest != bigRest {
			fault.Wrong++
			t.Logf("consume on a full disk: got %d bytes that begin with %.60q, want a message of %s", len(text),
				text, bigTopic)
		}
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
