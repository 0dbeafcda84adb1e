//go:build linux

package cli

import (
	"strings"
	"testing"
)

// TestFirstScreen checks that a person who starts a server on a terminal sees the banner first,
// and the log after it.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	p := newWorkFolder(t)
	s := p.runOnTerminal(120, `trap : INT; timeout --foreground -s INT 60 freshet serve --data-dir own \
		--http 127.0.0.1:0 --https off --ops off --stream off --stream-tls off; true`, "Stop it with Ctrl-C.", "\x03")
	before, after, ok := strings.Cut(s.raw, "Freshet is ready")
	if !ok || strings.Contains(before, "level=") {
		t.Errorf("a log line precedes the banner:\n%s", s.raw)
	}
	if !strings.Contains(after, "level=INFO") {
		t.Errorf("the log of the start is missing after the banner:\n%s", s.raw)
	}
}
