//go:build linux

package cli

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestFirstScreen checks that a person who starts a server on a terminal sees the banner first,
// and the log after it. A start that takes longer than five seconds shows its log before it is ready.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	p := newWorkFolder(t)
	// A line and not Ctrl-C ends the server: a terminal discards output that nobody has read when it gets Ctrl-C.
	s := p.runOnTerminal(120, `freshet serve --data-dir own --http 127.0.0.1:0 --https off --ops off --stream off \
		--stream-tls off & server=$!; read -r line; kill -TERM $server; wait $server`, "Stop it with Ctrl-C.", "\n")
	before, after, ok := strings.Cut(s.raw, "Freshet is ready")
	if took := regexp.MustCompile(`^ \(([0-9.]+)s\)`).FindStringSubmatch(after); took != nil {
		if seconds, err := strconv.ParseFloat(took[1], 64); err == nil && seconds >= 5 {
			t.Skipf("NOT TESTED: the start took %s s, and the server holds its log back for five", took[1])
		}
	}
	if !ok || strings.Contains(before, "level=") {
		t.Errorf("a log line precedes the banner:\n%s", s.raw)
	}
	if !strings.Contains(after, "level=INFO") {
		t.Errorf("the log of the start is missing after the banner:\n%s", s.raw)
	}
}
