package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"freshet/test/testserver"
)

var binary string

func TestMain(m *testing.M) {
	if os.Getenv("FRESHET_DEMO") != "" { // this process runs the demo on a terminal
		main()
		return
	}
	if os.Getenv("FRESHET_TEST_CLUSTER") == "" {
		fmt.Println("NOT TESTED: the demo of an ensemble; make test-ensemble runs it")
		return
	}
	testserver.Main(m, &binary)
}

// terminal is a pseudo-terminal that runs the demo. mu protects its output.
type terminal struct {
	*testing.T
	master  *os.File
	process *exec.Cmd
	temp    string
	width   int

	mu    sync.Mutex
	text  string
	ended chan error
}

// open starts the demo on a terminal of the given size.
func open(t *testing.T, width, height int) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = errors.Join(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}))
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := &terminal{T: t, master: master, temp: t.TempDir(), width: width, ended: make(chan error, 1)}
	d.process = exec.Command(os.Args[0])
	d.process.Env = append(os.Environ(), "FRESHET_DEMO=1", "FRESHET_BIN="+binary, "TMPDIR="+d.temp, "TERM=xterm")
	d.process.Stdin, d.process.Stdout, d.process.Stderr = slave, slave, slave
	d.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(d.process.Start(), slave.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.process.Process.Signal(syscall.SIGTERM) // it has exited unless the test failed
		if t.Failed() {
			t.Logf("last screen:\n%s", d.screen())
		}
	})
	go d.read()
	return d
}

func (d *terminal) read() {
	for buffer := make([]byte, 1<<16); ; {
		n, err := d.master.Read(buffer)
		d.mu.Lock()
		d.text += string(buffer[:n])
		d.mu.Unlock()
		if err != nil {
			d.ended <- d.process.Wait()
			return
		}
	}
}

// screen returns the last complete frame, or the text outside the frames.
func (d *terminal) screen() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	const from, to = "\x1b[H", "\x1b[J"
	text := d.text
	if end := strings.LastIndex(text, to); end >= 0 && !strings.Contains(text[end:], "\x1b[?1049l") {
		text = text[:end]
		text = text[strings.LastIndex(text, from)+len(from):]
	} else if _, after, left := strings.Cut(text, "\x1b[?1049l"); left {
		text = after
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\x1b[K", ""), "\r", "")
}

func (d *terminal) press(keys string) {
	d.Helper()
	if _, err := d.master.WriteString(keys); err != nil {
		d.Fatal(err)
	}
}

// shows waits until the screen has a line that matches.
func (d *terminal) shows(line string) {
	d.Helper()
	want := regexp.MustCompile("(?m)" + line)
	deadline, tick := time.Now().Add(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !want.MatchString(d.screen()) {
		if time.Now().After(deadline) {
			d.Fatalf("got no line that matches %q within a minute; screen:\n%s", line, d.screen())
		}
		<-tick.C
	}
}

// fits checks that no line is wider than the terminal.
func (d *terminal) fits() {
	d.Helper()
	for line := range strings.SplitSeq(d.screen(), "\n") {
		if got := len([]rune(line)); got > d.width {
			d.Errorf("got a line of %d columns, want %d at most: %s", got, d.width, line)
		}
	}
}

// end waits until the demo exits, and checks that it leaves neither files nor processes.
func (d *terminal) end() {
	d.Helper()
	select {
	case err := <-d.ended:
		if err != nil {
			d.Errorf("exit: got %v, want no error", err)
		}
	case <-time.After(30 * time.Second):
		d.Fatal("the demo did not exit within half a minute")
	}
	if left, err := filepath.Glob(filepath.Join(d.temp, "*")); err != nil || len(left) > 0 {
		d.Errorf("got %v, %v, want nothing left over", left, err)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		d.Fatal(err)
	}
	for _, path := range commands {
		if command, err := os.ReadFile(path); err == nil && strings.Contains(string(command), d.temp) {
			d.Errorf("got %s running, want no member left over", strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
}

// TestEnsembleDemo presses the keys of the demo as a user does.
func TestEnsembleDemo(t *testing.T) {
	d := open(t, 80, 24)
	d.shows(`their logs are ` + d.temp + `/freshet-demo-`)
	d.shows(`^Member b is ready after`)
	for _, member := range []string{"> a", "  b", "  c"} {
		d.shows(`^` + member + ` +runs +ready +\d +\d+% +\d+ MB`)
	}
	d.shows(`^5 +[abc] +\d+ +\d+ +a \d+, b \d+, c \d+`)
	d.shows(`^Clients: produced [1-9]\d*/s, consumed [1-9]`)
	d.shows(`redelivered \d+, foreign 0$`)
	d.shows(`^Keys: a b c choose .* k kill -9 .* t stop .* p pause`)
	d.shows(`q quit$`)
	d.fits()

	d.press("xc")
	d.shows(`^> c `)
	d.press("r")
	d.shows(`^c is running$`)
	d.press("k")
	d.shows(`^> c +gone +no lease +0`)
	d.shows(`c away`)
	d.press("p")
	d.shows(`^c is not running; r revives it`)
	d.press("r")
	d.shows(`^> c +starts`)
	d.shows(`^c is ready again, after`)
	d.shows(`^> c +runs +ready`)

	d.press("bp")
	d.shows(`^> b +paused +no lease`)
	d.shows(`^  a +runs +ready`)
	d.press("p")
	d.shows(`^> b +runs +ready`)
	d.fits()

	d.press("q")
	d.shows(`^All members have exited; their data and logs are deleted`)
	d.end()
}

// TestEnsembleDemoInterrupted ends the demo with Ctrl-C while it starts, and while a small
// terminal shows the table.
func TestEnsembleDemoInterrupted(t *testing.T) {
	d := open(t, 120, 40)
	d.shows(`^Starting three members`)
	d.press("\x03")
	d.end()

	d = open(t, 40, 12)
	d.shows(`^> a +runs`)
	d.shows(`q quit$`)
	d.fits()
	d.press("\x03")
	d.end()
}

// TestEnsembleDemoWithoutATerminal checks that the demo prints tables and exits.
func TestEnsembleDemoWithoutATerminal(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-time", "12s")
	cmd.Env = append(os.Environ(), "FRESHET_DEMO=1", "FRESHET_BIN="+binary, "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("got %v, want no error:\n%s", err, out)
	}
	for _, want := range []string{
		"MEMBER PROCESS", "kill -9 of c", "c      gone", "Reviving c", "ADDRESS",
		"All members have exited",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "\x1b") {
		t.Errorf("got terminal escape sequences, want none:\n%q", out)
	}
}
