package output

import (
	"fmt"
	"time"
)

// Age formats a duration as kubectl does, in its one or two largest units.
func Age(d time.Duration) string {
	d = max(d, 0)
	seconds := int(d.Seconds())
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", seconds)
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", seconds/60, seconds%60)
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", seconds/60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", seconds/3600)
	}
	return fmt.Sprintf("%dd", seconds/86400)
}

// AgeOf formats the time since a moment in RFC 3339.
func AgeOf(text string) string {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<unknown>"
	}
	return Age(time.Since(moment))
}

// Bytes formats a number of bytes with a binary unit and a number of digits.
func Bytes(n int64, digits int) string {
	units, f := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}, float64(n)
	i := 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	return fmt.Sprintf("%.*g %s", digits, f, units[i])
}
