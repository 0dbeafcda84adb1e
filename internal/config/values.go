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

// Std returns the duration as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the duration in the form that Parse accepts.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON encodes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// parseDuration rejects a number without a unit, except for 0.
func parseDuration(text string) (Duration, error) {
	parsed, err := time.ParseDuration(text)
	if _, number := strconv.ParseFloat(text, 64); number == nil && text != "0" {
		return 0, fmt.Errorf("duration %s must have a unit, such as %ss or 24h", text, text)
	}
	if err != nil {
		return 0, fmt.Errorf("duration %q is not valid; write it as 90s or 24h", text)
	}
	return Duration(parsed), nil
}

// Size is a number of bytes, written without a unit or with a binary one: 4Mi, 5MiB, 2Gi.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"Gi", 1 << 30},
	{"Mi", 1 << 20},
	{"Ki", 1 << 10},
}

// String returns the size in the largest unit that divides it.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if s != 0 && int64(s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(s)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalJSON encodes the size with its unit, or as a number without one.
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
