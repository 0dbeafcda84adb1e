package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration written as in Go: 90s, 5m, 24h.
type Duration time.Duration

// Std returns the standard library's form.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the form that is read back.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// parseDuration refuses a bare number, which has no unit.
func parseDuration(text string) (Duration, error) {
	parsed, err := time.ParseDuration(text)
	if _, number := strconv.ParseFloat(text, 64); number == nil && text != "0" {
		return 0, fmt.Errorf("a duration must have a unit, such as %ss or 24h; %s has none", text, text)
	}
	if err != nil {
		return 0, fmt.Errorf("duration %q is not valid; write for example 90s or 24h", text)
	}
	return Duration(parsed), nil
}

// Size is a number of bytes, written plainly or with a binary unit: 4Mi, 5MiB, 2Gi.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"Gi", 1 << 30},
	{"Mi", 1 << 20},
	{"Ki", 1 << 10},
}

// String returns the largest unit that divides the size.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if s != 0 && int64(s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(s)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalJSON writes the size with its unit, or as a number when it has none.
func (s Size) MarshalJSON() ([]byte, error) {
	text := s.String()
	if text == strconv.FormatInt(int64(s), 10) {
		return []byte(text), nil
	}
	return json.Marshal(text)
}

func parseSize(text string) (Size, error) {
	number, factor := strings.TrimSuffix(text, "B"), int64(1)
	for _, unit := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, unit.suffix); ok {
			number, factor = rest, unit.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || (factor > 1 && (n > math.MaxInt64/factor || n < math.MinInt64/factor)) {
		return 0, fmt.Errorf("size %q is not valid; write bytes, or a number with Ki, Mi or Gi", text)
	}
	return Size(n * factor), nil
}
