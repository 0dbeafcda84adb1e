package faults

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// TestFaultDamagedDataDirectory damages one file of a data directory at a time and starts
// the server on it. The server responds correctly or reports the damage, and freshet check
// finds every damage that prevents the start.
func TestFaultDamagedDataDirectory(t *testing.T) {
	good := t.TempDir()
	s, err := start(t, good)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	if err := s.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binary, "check", good).CombinedOutput(); err != nil {
		t.Fatalf("check of an intact directory: got %v, want success\n%s", err, out)
	}
	fault := tally.Fault{Name: "damaged file, whole server"}
	files := filesOf(t, good)
	refused, seen := 0, map[string]bool{}
	for i := range files {
		// One file of each kind, unless FRESHET_LONG is set.
		kind := strings.SplitN(files[i], "/", 2)[0] + filepath.Ext(files[i])
		if seen[kind] && !tally.Long() {
			continue
		}
		seen[kind] = true
		damage, what := damages[i%len(damages)].do, damages[i%len(damages)].name
		data := t.TempDir()
		if out, err := exec.Command("cp", "-a", good+"/.", data).CombinedOutput(); err != nil { // preserves permissions
			t.Fatalf("%v: %s", err, out)
		}
		change(t, filepath.Join(data, files[i]), damage)
		fault.Injected++
		fault.Checked += messages + 1
		out, checkErr := exec.Command(binary, "check", data).CombinedOutput()
		if bytes.Contains(out, []byte("goroutine ")) {
			t.Errorf("%s %s: check: got a stack trace, want an error message\n%s", what, files[i], out)
		}
		s, err := start(t, data)
		if err == nil {
			checkAll(t, s, what+" "+files[i], &fault)
			s.Kill()
			continue
		}
		refused++
		if !strings.Contains(err.Error(), "freshet: ") || strings.Contains(err.Error(), "goroutine ") {
			fault.Wrong++
			t.Logf("%s %s: got %v, want an error message", what, files[i], err)
		}
		if checkErr == nil {
			fault.Wrong++
			t.Logf("%s %s: the server does not start, but check finds no damage:\n%s\n%v", what, files[i], out, err)
		}
	}
	if refused == 0 || refused == fault.Injected {
		t.Errorf("got %d of %d starts refused, want some but not all", refused, fault.Injected)
	}
	fault.Record(t)
}

// damages are the kinds of damage.
var damages = []struct {
	name string
	do   func([]byte) []byte
}{
	{"a bit of", func(data []byte) []byte { data[len(data)/2] ^= 0x10; return data }},
	{"the end of", func(data []byte) []byte { return data[:len(data)/2] }},
	{"all of", func([]byte) []byte { return nil }},
}

// checkAll checks that everything acknowledged is returned or reported as damaged.
func checkAll(t *testing.T, s *testserver.Server, what string, fault *tally.Fault) {
	t.Helper()
	note := func(path, want string) {
		status, text := call(t, s, http.MethodGet, path, "")
		switch {
		case status == http.StatusOK && strings.Contains(text, want):
		case status == http.StatusOK && foreign(text, kept):
			fault.Foreign++
			t.Logf("%s: %s: got a message of another topic: %.60q", what, path, text)
		case status == http.StatusServiceUnavailable && strings.Contains(text, "damaged"):
		case status == http.StatusNotFound || status == http.StatusNoContent:
			fault.Lost++
			t.Logf("%s: %s: got %d %s, want the content or an error about damage", what, path, status, text)
		default:
			fault.Wrong++
			t.Logf("%s: %s: got %d %s, want the content or an error about damage", what, path, status, text)
		}
	}
	for i := range messages {
		note(peek+strconv.Itoa(i+1), payload(i))
	}
	note("/subjects/kept/versions/1", `"subject":"kept"`)
}

// filesOf lists the files to damage: non-empty ones, without those that a start recreates
// and the space reserve.
func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if info, statErr := entry.Info(); err == nil && statErr == nil && info.Size() > 0 &&
			name != "RESERVE" && name != "LOCK" && name != "admin.token" && !strings.HasSuffix(name, ".tmp") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
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
