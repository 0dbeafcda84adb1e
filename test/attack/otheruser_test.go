package attack

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"freshet/test/tally"
	"freshet/test/testserver"
)

// nobodyUID is the user id of the attacker.
const nobodyUID = 65534

// TestAttackListeners compares the addresses that the process listens on with
// docs/reference/listeners.md.
func TestAttackListeners(t *testing.T) {
	t.Parallel()
	server := start(t, testserver.Options{Kafka: true})
	want := map[socket]string{
		{"tcp", server.Kafka}:                                 "stream",
		{"tcp", server.KafkaTLS}:                              "streamtls",
		{"tcp", strings.TrimPrefix(server.URL, "http://")}:    "http",
		{"tcp", strings.TrimPrefix(server.HTTPS, "https://")}: "https",
		{"tcp", strings.TrimPrefix(server.Ops, "http://")}:    "ops",
		{"unix", controlSocket(server)}:                       "control",
	}
	var names []string
	open := sockets(t, server.PID())
	unexpected := 0
	for _, s := range open {
		name, ok := want[s]
		if !ok {
			unexpected++
			t.Errorf("the process listens on %s %s, which was not configured", s.network, s.address)
			continue
		}
		names = append(names, name)
	}
	tally.Attack(t, "find a listener that was not configured", len(open), unexpected)
	slices.Sort(names)
	if documented := documentedListeners(t); !slices.Equal(names, documented) {
		t.Errorf("the process listens on %v, docs/reference/listeners.md has %v", names, documented)
	}
}

// controlSocket returns the address of the control socket, as /proc shows it.
func controlSocket(server *testserver.Server) string {
	path := filepath.Join(server.DataDir, "control", "socket")
	if len(path) <= 100 {
		return path
	}
	return "a path through /proc, see internal/ops/adminsocket" // no test uses such a long path
}

// documentedListeners returns the first cells of the table's rows.
func documentedListeners(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/listeners.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		names = append(names, row[1])
	}
	slices.Sort(names)
	return names
}

// TestAttackAsAnotherUser tries, as another user of the machine, to connect to every
// unix socket of the process and to open every file of the data directory. Other users
// may enter that directory.
func TestAttackAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: becoming another user needs root; run this test as root")
	}
	shared, err := os.MkdirTemp("", "freshet-attack-shared-") //nolint:usetesting // other users must enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(shared) })
	data := filepath.Join(shared, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{shared, data} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	server := start(t, testserver.Options{DataDir: data})
	attempts, successes := attackAs(t, nobodyUID, server, shared)
	tally.Attack(t, "reach sockets and files as another user", attempts, len(successes))
	if len(successes) > 0 {
		t.Errorf("uid %d could:\n%s", nobodyUID, strings.Join(successes, "\n"))
	}
}

// attackAs lets a child process with another user id try every target.
func attackAs(t *testing.T, uid uint32, server *testserver.Server, shared string) (attempts int, successes []string) {
	t.Helper()
	var targets []string
	for _, s := range sockets(t, server.PID()) {
		if s.network == "unix" {
			targets = append(targets, "connect "+s.address)
		}
	}
	err := filepath.WalkDir(server.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			targets = append(targets, "read "+path, "write "+path)
		}
		return nil // files appear and disappear while the server runs
	})
	if err != nil {
		t.Fatal(err)
	}
	attacker := exec.CommandContext(t.Context(), copyOfThisTest(t, shared))
	attacker.Env = []string{probeVariable + "=1"}
	attacker.Dir = "/"
	attacker.Stdin = strings.NewReader(strings.Join(targets, "\n"))
	attacker.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := attacker.CombinedOutput()
	if err != nil {
		t.Fatalf("running as uid %d: %v\n%s", uid, err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if got := lines[len(lines)-1]; got != "tried "+strconv.Itoa(len(targets)) {
		t.Fatalf("the attacker ended with %q, want all of %d targets tried", got, len(targets))
	}
	return len(targets), lines[:len(lines)-1]
}

// copyOfThisTest copies this program to a directory where other users may run it.
func copyOfThisTest(t *testing.T, shared string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(shared, "attacker")
	if err := os.WriteFile(path, code, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// probeVariable is the environment variable that makes this program run as the attacker.
const probeVariable = "FRESHET_ATTACK_PROBE"

// probe tries the targets on standard input, one per line, and prints those that
// succeeded.
func probe(string) int {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	lines := strings.Split(string(text), "\n")
	for _, line := range lines {
		action, path, _ := strings.Cut(line, " ")
		if attempt(action, path) {
			fmt.Println(line)
		}
	}
	fmt.Println("tried", len(lines))
	return 0
}

func attempt(action, path string) bool {
	var closer io.Closer
	var err error
	switch action {
	case "connect":
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		closer, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
	case "read":
		closer, err = os.Open(path)
	case "write":
		closer, err = os.OpenFile(path, os.O_WRONLY, 0)
	default:
		return true // an unknown action must not count as a failed attack
	}
	if err != nil {
		return false
	}
	_ = closer.Close() // opening it is the success
	return true
}
