package banner

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHold checks which log lines wait for the banner.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		write := func(h *Hold, line string) {
			if _, err := h.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		h := NewHold(&b)
		write(h, "time=1 level=INFO msg=a\n")
		write(h, "time=2 level=WARN msg=b\n")
		b.WriteString("banner\n")
		h.End()
		write(h, "time=3 level=INFO msg=c\n")
		want := "time=2 level=WARN msg=b\nbanner\ntime=1 level=INFO msg=a\ntime=3 level=INFO msg=c\n"
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
		b.Reset()
		slow := NewHold(&b)
		write(slow, "time=4 level=INFO msg=d\n")
		time.Sleep(maxHold + time.Second) // fake time of synctest
		synctest.Wait()
		if b.String() != "time=4 level=INFO msg=d\n" {
			t.Errorf("a slow start: got %q, want its log", b.String())
		}
		slow.End()
	})
}
