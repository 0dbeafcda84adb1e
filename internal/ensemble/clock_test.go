package ensemble

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestEnsembleTime checks that a member whose clock is ten minutes ahead uses the time of the others,
// that the others keep theirs, that two clocks decide nothing, and that old measurements expire.
func TestEnsembleTime(t *testing.T) {
	t.Parallel()
	right := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	wrong := right.Add(10 * time.Minute)
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, nil))
	now := wrong
	c := newClocks(log, func() time.Time { return now })
	measure := func(member string, other time.Time) {
		c.record(member, now.Add(-time.Millisecond), now.Add(time.Millisecond), other)
	}
	measure("b", right)
	if got := c.time(); !got.Equal(wrong) {
		t.Errorf("with one other member: got %s, want its own time", got)
	}
	measure("c", right.Add(time.Millisecond))
	if got := c.time(); got.Sub(right).Abs() > time.Second {
		t.Errorf("with two other members: got %s, want %s", got, right)
	}
	measure("c", right)
	observed := Observation{ClocksApart: c.apart()}
	if notes := observed.Degraded(); len(notes) != 1 || !strings.Contains(notes[0], "differ by up to 10m0s") {
		t.Errorf("got notes %q, want the difference of the clocks", notes)
	}
	if got := strings.Count(lines.String(), "synchronize it with NTP"); got != 1 {
		t.Errorf("got %d warnings, want 1: %s", got, &lines)
	}
	now = now.Add(time.Minute) // b is away since
	measure("c", right.Add(time.Minute))
	if got := c.time(); !got.Equal(now) {
		t.Errorf("after the measurement of b has expired: got %s, want its own time", got)
	}

	good := newClocks(log, func() time.Time { return right })
	good.record("c", right, right, right.Add(maxSkew))
	if got := good.apart(); got != 0 {
		t.Errorf("with a normal difference: got %s, want 0", got)
	}
	good.record("a", right, right, wrong)
	good.record("c", right, right, right.Add(100*time.Millisecond))
	if got := good.time(); !got.Equal(right) {
		t.Errorf("member with the right clock: got %s, want its own time", got)
	}
	good.record("c", right, right.Add(2*clockMaxRound), wrong) // slow calls do not count
	if got := good.time(); !got.Equal(right) {
		t.Errorf("after a slow call: got %s, want its own time", got)
	}
}
