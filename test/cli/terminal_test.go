//go:build linux

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// screen is the output of a command on a terminal.
type screen struct {
	columns int
	raw     string
	lines   []string // after the command has exited
	wraps   bool     // a line did not fit
}

// runOnTerminal runs a script on a terminal with the given width, and types text when the terminal
// shows prompt.
func (p workFolder) runOnTerminal(columns uint16, script, prompt, typed string) screen {
	p.Helper()
	master, slave := pty(p.T, columns)
	cmd := exec.CommandContext(p.Context(), "bash", "-c", script)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), append(environment(p.dir, server), "TERM=xterm-256color")...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	if err := slave.Close(); err != nil {
		p.Fatal(err)
	}
	var raw strings.Builder
	for buffer := make([]byte, 4096); ; {
		n, err := master.Read(buffer)
		raw.Write(buffer[:n])
		if typed != "" && strings.Contains(raw.String(), prompt) {
			if _, err := master.WriteString(typed); err != nil {
				p.Fatal(err)
			}
			typed = ""
		}
		if err != nil {
			break // the command has closed the terminal
		}
	}
	if err := cmd.Wait(); err != nil {
		p.Fatalf("%s: %v\n%q", script, err, raw.String())
	}
	s := screen{columns: int(columns), raw: raw.String()}
	s.render()
	return s
}

// pty opens both ends of a pseudo-terminal.
func pty(t *testing.T, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("NOT TESTED: no pseudo-terminals on this system: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// render interprets the output as a terminal does.
func (s *screen) render() {
	line, at := []rune{}, 0
	for text := []rune(colour.ReplaceAllString(s.raw, "")); len(text) > 0; text = text[1:] {
		switch r := text[0]; {
		case r == '\r':
			at = 0
		case r == '\n':
			s.lines = append(s.lines, strings.TrimRight(string(line), " "))
			line, at = []rune{}, 0
		case r == '\x1b' && len(text) > 2 && text[1] == '[' && text[2] == 'K':
			line = line[:at]
			text = text[2:]
		default:
			if at == s.columns {
				s.wraps = true
			}
			line = append(line[:min(at, len(line))], append([]rune{r}, line[min(at+1, len(line)):]...)...)
			at++
		}
	}
	if len(line) > 0 {
		s.lines = append(s.lines, string(line))
	}
}

var progressLine = regexp.MustCompile(`\r\x1b\[K[^\r]*[0-9]+/s`)

// TestTerminal checks the progress output of long commands on a terminal, and that pipes
// get none of it.
func TestTerminal(t *testing.T) {
	t.Parallel()
	p := newWorkFolder(t)
	p.do(`freshet org create terminal
		freshet apply -n terminal -f - <<END
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingInstance
metadata: {name: default}
---
apiVersion: cloud.vendor.io/v1alpha1
kind: MessagingCluster
metadata: {name: default}
spec: {instanceName: default, location: local, broker: {replicas: 1}}
END
		freshet wait mc/default -n terminal --for condition=Ready
		for topic in many typed; do freshet topic create $topic -n terminal; done
		seq 1 50000 > lines`)
	for _, c := range []struct {
		name, script  string
		prompt, typed string
		live          bool // the output has a progress line
		want          string
	}{
		{
			name: "produce", script: "freshet produce many -n terminal < lines", live: true,
			want: `^50000 messages stored$`,
		},
		{
			name: "consume into a file", script: "freshet consume many -n terminal -s a --create-from earliest > out",
			live: true, want: `^50000 messages in [0-9.]+ s$`,
		},
		{
			name: "consume", script: "freshet consume many -n terminal -s b --create-from earliest --count 2",
			want: "^1\n2$",
		},
		{
			name: "nothing to consume", script: "freshet consume many -n terminal -s a",
			want: `^0 messages in 1\.[0-9] s$`,
		},
		{
			name: "messages that are typed", script: "freshet produce typed -n terminal", prompt: "end with Ctrl-D.",
			typed: "hello\nworld\n\x04",
			want:  "^Type messages, one per line; end with Ctrl-D.\nhello\nworld\n2 messages stored$",
		},
		{name: "one message", script: "freshet produce typed one -n terminal", want: `^1 message stored$`},
		{
			name: "bench produce", script: "freshet bench produce -n terminal --count 1000000 --for 1s", live: true,
			want: `(?s)^produce: [0-9]+ in .*\ncalls: p50 `,
		},
		{
			name: "bench consume", script: "freshet bench consume -n terminal --count 20000 --for 1s", live: true,
			want: `(?s)^consume: [0-9]+ in .*\ncalls: p50 `,
		},
	} {
		s := p.runOnTerminal(80, c.script, c.prompt, c.typed)
		if got := strings.Join(s.lines, "\n"); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: got\n%s\nwant %s\nfrom %q", c.name, got, c.want, s.raw)
		}
		if progressLine.MatchString(s.raw) != c.live || s.wraps {
			t.Errorf("%s: progress line: %t, want %t; a line wraps: %t\n%q", c.name, !c.live, c.live,
				s.wraps, s.raw)
		}
	}
	if s := p.runOnTerminal(30, "freshet bench produce -n terminal --count 1000000 --for 1s > out", "", ""); s.wraps ||
		!progressLine.MatchString(s.raw) && !strings.Contains(s.raw, "█") {
		t.Errorf("narrow terminal: a line wraps: %t, %q", s.wraps, s.raw)
	}
	if s := p.runOnTerminal(80, "TERM=dumb freshet produce many -n terminal < lines", "",
		""); strings.Contains(s.raw, "\x1b") {
		t.Errorf("terminal without escape sequences got %q", s.raw)
	}
	for script, want := range map[string]bool{
		"freshet get mc -n terminal":            true,
		"NO_COLOR=1 freshet get mc -n terminal": false, "TERM=dumb freshet get mc -n terminal": false,
	} {
		if s := p.runOnTerminal(80, script, "", ""); colour.MatchString(s.raw) != want {
			t.Errorf("%s: colours: %t, want %t: %q", script, !want, want, s.raw)
		}
	}
	p.checkPipes()
}

// checkPipes checks that commands in pipes print their results and nothing else.
func (p workFolder) checkPipes() {
	p.Helper()
	for script, want := range map[string]string{
		"freshet produce many -n terminal < lines":                               `^$`,
		"freshet consume many -n terminal -s c --create-from earliest --count 2": `^1\n2\n$`,
		"freshet consume many -n terminal -s a --create-from latest > out":       `^$`,
		"freshet bench registry -n terminal --count 5 --for 1s -o json":          `^\{`,
		"freshet bench produce -n terminal --count 100 --for 1s":                 `^produce: `,
	} {
		out, err := bash(p.Context(), p.dir, server, script)
		if err != nil || !regexp.MustCompile(want).MatchString(out) || strings.ContainsAny(out, "\r\x1b") {
			p.Errorf("%s: got %q, %v; want %s without terminal output", script, out, err, want)
		}
	}
}
