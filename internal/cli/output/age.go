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
