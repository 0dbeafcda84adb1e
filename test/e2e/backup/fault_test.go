package backup

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// interruption starts a backup, interrupts it, and returns the number of wrong results.
type interruption func(t *testing.T, w *backupRound) (wrong int)

// backupRound is the state of a round.
type backupRound struct {
	server *testserver.Server
	target string // folder of backups
	fault  *tally.Fault
}

// TestFaultKilledDuringBackup kills the server, or the command, in the middle of a backup
// under load. A partial backup is never accepted as complete, the server restarts with
// everything that it had acknowledged, and the next backup works.
func TestFaultKilledDuringBackup(t *testing.T) {
	t.Parallel()
	rounds := 1
	if tally.Long() {
		rounds = 8
	}
	w := &backupRound{
		server: start(t, testserver.Options{}), target: filepath.Join(t.TempDir(), "backups"),
		fault: &tally.Fault{Name: "kill -9 during a backup"},
	}
	must(t, w.server, http.MethodPut, "/admin/v2/persistent/public/default/load/subscription/big", "")
	body := strings.Repeat("x", 1<<20)
	for range 8 {
		must(t, w.server, http.MethodPost, topic+"/message", body)
	}
	must(t, w.server, http.MethodPut, "/admin/v2/persistent/public/default/load/subscription/worker", "")
	freshet(t, "backup", w.target, "--data-dir", w.server.DataDir)
	for round := range rounds {
		for i, c := range []interruption{
			serverWhileStaging, serverWhileWriting, serverWhileStreaming,
			commandWhileWriting,
		} {
			work := startLoad(t, w.server, "round-"+string(rune('a'+round))+string(rune('a'+i)), 200)
			awaitMore(t, work, 40)
			w.fault.Injected++
			w.fault.Wrong += c(t, w)
			w.restart(t, work)
		}
	}
	checkNewest(t, w)
	w.fault.Record(t)
}

// restart restarts the killed server, and checks that it has everything that it had
// acknowledged.
func (w *backupRound) restart(t *testing.T, work *load) {
	t.Helper()
	w.server.Kill() // in case only the command was killed
	known := work.end()
	began := time.Now()
	w.server = start(t, testserver.Options{DataDir: w.server.DataDir})
	w.fault.Recovery = max(w.fault.Recovery, time.Since(began))
	lost, foreign, wrong := check(t, w.server, known, known)
	w.fault.Checked += known.count()
	w.fault.Lost += lost
	w.fault.Foreign += foreign
	w.fault.Wrong += wrong
	if left, err := os.Stat(filepath.Join(w.server.DataDir, "backup-staging")); err == nil {
		w.fault.Wrong++
		t.Errorf("staging directory of an interrupted backup still exists: %s", left.Name())
	}
}

// begin starts freshet backup and returns its standard error.
func (w *backupRound) begin(t *testing.T, to string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := command(t, "backup", to, "--data-dir", w.server.DataDir)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(stderr)
}

// outcome checks that a successful command left a valid backup, and that a failed one left
// nothing that is accepted as a backup.
func (w *backupRound) outcome(t *testing.T, cmd *exec.Cmd, rest io.Reader) (wrong int) {
	t.Helper()
	_, _ = io.Copy(io.Discard, rest) // until the command exits
	err := cmd.Wait()
	if out, code := try(t, "backup", "verify", w.target); code != 0 {
		wrong++
		t.Errorf("after an interrupted backup (%v) the newest one is invalid: exit code %d\n%s", err, code, out)
	}
	left, globErr := filepath.Glob(filepath.Join(w.target, ".incomplete-*"))
	if globErr != nil {
		t.Fatal(globErr)
	}
	if err == nil && len(left) > 0 {
		wrong++
		t.Errorf("command succeeded but left %v", left)
	}
	for _, path := range left {
		wrong += refused(t, path)
	}
	return wrong
}

// refused checks that a partial backup cannot be restored.
func refused(t *testing.T, path string) (wrong int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	if out, code := try(t, "restore", path, "--data-dir", dir); code == 0 {
		wrong++
		t.Errorf("partial backup was restored:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd")); err == nil {
		wrong++
		t.Error("failed restore left a data directory")
	}
	return wrong
}

func serverWhileStaging(t *testing.T, w *backupRound) int {
	t.Helper()
	cmd, progress := w.begin(t, w.target)
	progress.Scan() // the copy has begun
	w.server.Kill()
	return w.outcome(t, cmd, drained(progress))
}

func serverWhileWriting(t *testing.T, w *backupRound) int {
	t.Helper()
	cmd, progress := w.begin(t, w.target)
	for progress.Scan() && !strings.Contains(progress.Text(), "resources") {
	}
	w.awaitWriting()
	w.server.Kill()
	return w.outcome(t, cmd, drained(progress))
}

// awaitWriting returns when a partial backup exists, or after a second.
func (w *backupRound) awaitWriting() {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		if left, err := filepath.Glob(filepath.Join(w.target, ".incomplete-*")); err != nil || len(left) > 0 {
			return
		}
	}
}

func commandWhileWriting(t *testing.T, w *backupRound) int {
	t.Helper()
	cmd, progress := w.begin(t, w.target)
	for progress.Scan() && !strings.Contains(progress.Text(), "resources") {
	}
	select { // at a random moment
	case <-time.After(time.Duration(rand.IntN(30)) * time.Millisecond):
	case <-t.Context().Done():
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Log(err) // it has already exited
	}
	return w.outcome(t, cmd, drained(progress))
}

// serverWhileStreaming kills the server while the stream is not read; the stream is longer
// than the pipe's buffer.
func serverWhileStreaming(t *testing.T, w *backupRound) (wrong int) {
	t.Helper()
	cmd := command(t, "backup", "-", "--data-dir", w.server.DataDir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1<<10)
	if _, err := io.ReadFull(out, first); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	w.server.Kill()
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "cut.tar")
	if err := os.WriteFile(archive, slices.Concat(first, rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		// The stream may have been complete; then it must be valid.
		if out, code := try(t, "backup", "verify", archive); code != 0 {
			wrong++
			t.Errorf("command succeeded but its stream is invalid:\n%s", out)
		}
		return wrong
	}
	if out, code := try(t, "backup", "verify", archive); code == 0 {
		wrong++
		t.Errorf("truncated stream was accepted as valid:\n%s", out)
	}
	return wrong + refused(t, archive)
}

// checkNewest takes another backup and restores it.
func checkNewest(t *testing.T, w *backupRound) {
	t.Helper()
	freshet(t, "backup", w.target, "--data-dir", w.server.DataDir)
	if left, err := filepath.Glob(filepath.Join(w.target, ".incomplete-*")); err != nil || len(left) > 0 {
		w.fault.Wrong++
		t.Errorf("after a complete backup: got %v, %v; want no partial ones", left, err)
	}
	again := restored(t, w.target, nil)
	must(t, again, http.MethodGet, objects+"/serviceaccounts/admin", "")
}

// drained reads the rest of a scanner and returns an empty reader.
func drained(s *bufio.Scanner) io.Reader {
	for s.Scan() {
	}
	return strings.NewReader("")
}
