package apikeycmd

import (
	"testing"
	"time"
)

func TestParseExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"90d": "2026-05-01T12:00:00Z", "12h30m": "2026-02-01T00:30:00Z", "2027-01-31": "2027-01-31T00:00:00Z",
		"2027-01-31T10:00:00+02:00": "2027-01-31T08:00:00Z",
	} {
		if got, err := parseExpiry(text, now); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s: got %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "-1h", "0s", "2020-01-01", "1234567d", "90 d"} {
		if got, err := parseExpiry(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
