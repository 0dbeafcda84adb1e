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

// cut is a backup that was cut short in some way.
type cut func(t *testing.T, w *cutting) (wrong int)

// cutting is what a round works on.
type cutting struct {
	server *testserver.Server
	target string // folder of backups
	fault  *tally.Fault
}

// TestFaultKilledDuringBackup kills the server, or the command, in the middle of a
// backup under load. What was written is never taken for a whole backup unless it
// is one, the server starts again with everything that it had acknowledged, and the
// next backup works.
func TestFaultKilledDuringBackup(t *testing.T) {
	t.Parallel()
	rounds := 1
	if tally.Long() {
		rounds = 8
	}
	w := &cutting{
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
		for i, c := range []cut{serverWhileStaging, serverWhileWriting, serverWhileStreaming, commandWhileWriting} {
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

// restart starts the server again where it was killed, and looks for what it had
// acknowledged.
func (w *cutting) restart(t *testing.T, work *load) {
	t.Helper()
	w.server.Kill() // the command may have been the one that was killed
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
		t.Errorf("the copy of a backup that was cut short is still there: %s", left.Name())
	}
}

// begin runs freshet backup and returns what it says.
func (w *cutting) begin(t *testing.T, to string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := command(t, "backup", to, "--data-dir", w.server.DataDir)
	complaints, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(complaints)
}

// outcome sees that a command which says that it succeeded left a good backup, and
// one that failed nothing that is taken for one.
func (w *cutting) outcome(t *testing.T, cmd *exec.Cmd, rest io.Reader) (wrong int) {
	t.Helper()
	_, _ = io.Copy(io.Discard, rest) // until it ends
	err := cmd.Wait()
	if out, code := try(t, "backup", "verify", w.target); code != 0 {
		wrong++
		t.Errorf("after a backup was cut short (%v) the newest is not good: exit code %d\n%s", err, code, out)
	}
	left, globErr := filepath.Glob(filepath.Join(w.target, ".incomplete-*"))
	if globErr != nil {
		t.Fatal(globErr)
	}
	if err == nil && len(left) > 0 {
		wrong++
		t.Errorf("the command succeeded, and left %v", left)
	}
	for _, path := range left {
		wrong += refused(t, path)
	}
	return wrong
}

// refused sees that what is no whole backup cannot be restored.
func refused(t *testing.T, path string) (wrong int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	if out, code := try(t, "restore", path, "--data-dir", dir); code == 0 {
		wrong++
		t.Errorf("what is not whole was restored:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd")); err == nil {
		wrong++
		t.Error("a restore that failed left a data directory")
	}
	return wrong
}

func serverWhileStaging(t *testing.T, w *cutting) int {
	t.Helper()
	cmd, says := w.begin(t, w.target)
	says.Scan() // it has begun to copy
	w.server.Kill()
	return w.outcome(t, cmd, drained(says))
}

func serverWhileWriting(t *testing.T, w *cutting) int {
	t.Helper()
	cmd, says := w.begin(t, w.target)
	for says.Scan() && !strings.Contains(says.Text(), "resources") {
	}
	w.awaitWriting()
	w.server.Kill()
	return w.outcome(t, cmd, drained(says))
}

// awaitWriting returns when there is part of a backup, or there was a moment ago.
func (w *cutting) awaitWriting() {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		if left, err := filepath.Glob(filepath.Join(w.target, ".incomplete-*")); err != nil || len(left) > 0 {
			return
		}
	}
}

func commandWhileWriting(t *testing.T, w *cutting) int {
	t.Helper()
	cmd, says := w.begin(t, w.target)
	for says.Scan() && !strings.Contains(says.Text(), "resources") {
	}
	select { // anywhere in it
	case <-time.After(time.Duration(rand.IntN(30)) * time.Millisecond):
	case <-t.Context().Done():
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Log(err) // it was quicker
	}
	return w.outcome(t, cmd, drained(says))
}

// serverWhileStreaming kills the server while nobody reads the stream, which is
// longer than a pipe holds.
func serverWhileStreaming(t *testing.T, w *cutting) (wrong int) {
	t.Helper()
	cmd := command(t, "backup", "-", "--data-dir", w.server.DataDir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1<<10)
	if _, err := io.ReadFull(out, first); err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
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
		// It may have had everything; then it is good.
		if out, code := try(t, "backup", "verify", archive); code != 0 {
			wrong++
			t.Errorf("the command succeeded, and its stream is not good:\n%s", out)
		}
		return wrong
	}
	if out, code := try(t, "backup", "verify", archive); code == 0 {
		wrong++
		t.Errorf("a stream that was cut off is called good:\n%s", out)
	}
	return wrong + refused(t, archive)
}

// checkNewest takes a backup after all that, and restores it.
func checkNewest(t *testing.T, w *cutting) {
	t.Helper()
	freshet(t, "backup", w.target, "--data-dir", w.server.DataDir)
	if left, err := filepath.Glob(filepath.Join(w.target, ".incomplete-*")); err != nil || len(left) > 0 {
		w.fault.Wrong++
		t.Errorf("after a whole backup there is %v, %v; want nothing incomplete", left, err)
	}
	again := restored(t, w.target, nil)
	must(t, again, http.MethodGet, objects+"/serviceaccounts/admin", "")
}

// drained is what a scanner has not read yet.
func drained(s *bufio.Scanner) io.Reader {
	for s.Scan() {
	}
	return strings.NewReader("")
}
