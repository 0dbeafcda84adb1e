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

// disk is a small file system that a test can fill.
type disk struct {
	kind string // file system type
	size int    // bytes
	long bool   // only with FRESHET_LONG
}

// disks differ in their behaviour when full: tmpfs releases the space of a partial write,
// ext4 keeps it allocated.
var disks = []disk{
	{kind: "tmpfs", size: 384 << 20},
	{kind: "tmpfs", size: 192 << 20, long: true},
	{kind: "ext4", size: 384 << 20, long: true},
}

// TestFaultDiskFull fills a small disk, with messages and with another file, under a running
// server and before a start. All acknowledged data can be read, consumed and deleted at all
// times, and the server stops on request.
func TestFaultDiskFull(t *testing.T) {
	// The default quota is three quarters of the disk, which could stop messages before the disk is full.
	t.Setenv("FRESHET_QUOTAS_STORED_BYTES", "10Gi")
	for _, d := range disks {
		t.Run(d.kind+" of "+strconv.Itoa(d.size>>20)+" MiB", func(t *testing.T) {
			if d.long && !tally.Long() {
				t.Skip("NOT TESTED: a full disk of this kind; set FRESHET_LONG=1")
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

	fillWithMessages(t, s, mount, d.size)
	fault.Injected++
	checkUsable(t, s, &fault)

	filler := filepath.Join(mount, "filler")
	fillDisk(t, mount, filler)
	fault.Injected++
	checkUsable(t, s, &fault)
	stopInTime(t, s)

	// Starts on a full disk: after a graceful shutdown, and after a kill.
	for i := range starts() {
		if i%2 == 1 {
			releasePreallocated(t, data)
		}
		fillDisk(t, mount, filler)
		fault.Injected++
		if s, err = start(t, data); err != nil {
			t.Fatalf("start %d on a full disk: %v", i+1, err)
		}
		checkUsable(t, s, &fault)
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
	checkUsable(t, s, &fault)
	awaitRejected(t, s, mount)
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
		t.Errorf("log: got %d lines about the same failure, want at most 2", n)
	}

	fault.Recovery = awaitAccepted(t, s, filler)
	if err := s.Stop(20 * time.Second); err != nil {
		t.Error(err)
	}
	fault.Record(t)
}

// releasePreallocated releases the space that etcd's log has preallocated, as if the preallocation had
// failed.
func releasePreallocated(t *testing.T, data string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(data, "etcd", "member", "wal", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("etcd's log: got %v, %v; want one", logs, err)
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

// starts returns how many times a server is started on a full disk.
func starts() int {
	if tally.Long() {
		return 6
	}
	return 2
}

// mount creates the disk and returns its mount point.
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

// bigTopic is the topic that fills the disk. Its messages begin with a stamp of stampSize
// bytes.
const (
	bigTopic  = "big"
	stampSize = 100
)

// bigRest follows the stamp. It compresses well, unlike the filler of a stamp.
var bigRest = strings.Repeat("y", 900<<10)

// fillWithMessages produces until messages are rejected, which happens before the disk is full.
func fillWithMessages(t *testing.T, s *testserver.Server, mount string, size int) {
	t.Helper()
	must(t, s, http.MethodPut, "/admin/v2/persistent/public/default/big", "")
	must(t, s, http.MethodPut, "/admin/v2/persistent/public/default/big/subscription/reader", "")
	status, text := http.StatusCreated, ""
	for i := range 4 * size / (900 << 10) { // compaction compresses them
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
		t.Errorf("when messages are rejected: got %d bytes free, want a reserve", free)
	}
}

// stopInTime checks that a server stops within its drain time of 10 s plus 5 s.
func stopInTime(t *testing.T, s *testserver.Server) {
	t.Helper()
	began := time.Now()
	if err := s.Stop(20 * time.Second); err != nil {
		t.Errorf("stop on a full disk: got %v, want success within 15 s", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("stop on a full disk: got %s, want at most 15 s", took)
	}
}

// awaitRejected waits until the server, which checks the disk once a second, rejects messages.
func awaitRejected(t *testing.T, s *testserver.Server, mount string) {
	t.Helper()
	for began := time.Now(); ; {
		status, text := call(t, s, http.MethodPost, topic+"/message", payload(0))
		if status == http.StatusServiceUnavailable && strings.Contains(text, "disk is nearly full") {
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("produce with %d bytes left: got %d %s, want 503", available(t, mount), status, text)
		}
	}
}

// awaitAccepted removes the file that fills the disk and waits until messages are accepted again.
func awaitAccepted(t *testing.T, s *testserver.Server, filler string) time.Duration {
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
			t.Fatalf("produce with free space: got %d %s, want success", status, text)
		}
	}
}

// checkUsable checks that reading, consuming and acknowledging work.
func checkUsable(t *testing.T, s *testserver.Server, fault *tally.Fault) {
	t.Helper()
	for i := range messages {
		fault.Checked++
		status, text := call(t, s, http.MethodGet, peek+strconv.Itoa(i+1), "")
		if foreign(text, kept) {
			fault.Foreign++
		}
		if status != http.StatusOK || text != payload(i) {
			fault.Lost++
			t.Logf("message %d on a full disk: got %d %.200s, want the message", i, status, text)
		}
	}
	if status, text := call(t, s, http.MethodGet, "/subjects/kept/versions/1", ""); status != http.StatusOK {
		fault.Lost++
		t.Logf("schema on a full disk: got %d %s, want the schema", status, text)
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

// fillDisk writes a file until no space is left.
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
