package output

import (
	"io"
	"strconv"
	"strings"
)

// bars are the characters of a sparkline from the lowest to the highest.
var bars = []rune("▁▂▃▄▅▆▇█")

// Trend describes a history in one line: the mean, the highest and the newest value, and on a terminal
// a sparkline before them. A point that is nil is unknown and leaves a space. unit follows each value.
func Trend(w io.Writer, points []*float64, unit string) string {
	return trend(points, unit, IsTerminal(w))
}

func trend(points []*float64, unit string, sparkline bool) string {
	var sum, most float64
	var newest *float64
	known := 0
	for _, p := range points {
		if p == nil {
			continue
		}
		known++
		sum, most, newest = sum+*p, max(most, *p), p
	}
	if known == 0 {
		return "not recorded yet"
	}
	figures := "mean " + figure(sum/float64(known)) + unit + ", most " + figure(most) + unit + ", last " +
		figure(*newest) + unit
	if !sparkline {
		return figures
	}
	var line strings.Builder
	for _, p := range points {
		switch {
		case p == nil:
			line.WriteByte(' ')
		case most <= 0:
			line.WriteRune(bars[0])
		default:
			line.WriteRune(bars[int(max(*p, 0)/most*float64(len(bars)-1)+0.5)])
		}
	}
	return line.String() + "  " + figures
}

// figure formats a value with at most one digit after the point.
func figure(v float64) string {
	if v == float64(int64(v)) {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
