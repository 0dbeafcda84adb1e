package avro

import (
	"math"
	"strconv"
	"strings"

	"freshet/internal/registry/jsontree"
)

// A number keeps its text. As in Java, it is an integer of the smallest type that holds it,
// or a double if it has a point or an exponent.

// isDouble reports whether the text of a number is a double. NaN and Infinity come from
// defaults that are written as strings; see fieldDefault.
func isDouble(text string) bool { return strings.ContainsAny(text, ".eENI") }

// fits32 reports whether v is an integer that Java holds in an int.
func fits32(v *jsontree.Value) bool { return fitsBits(v, 32) }

// fits64 reports whether v is an integer that Java holds in an int or a long.
func fits64(v *jsontree.Value) bool { return fitsBits(v, 64) }

func fitsBits(v *jsontree.Value, bits int) bool {
	if v.Kind != jsontree.Number || isDouble(v.Text) {
		return false
	}
	_, err := strconv.ParseInt(v.Text, 10, bits)
	return err == nil
}

// floatOf returns the number v as a double.
func floatOf(v *jsontree.Value) float64 {
	f, _ := strconv.ParseFloat(v.Text, 64) // out of range gives an infinity, as in Java
	return f
}

// doubleValue returns the JSON value of a double.
func doubleValue(f float64) *jsontree.Value {
	return &jsontree.Value{Kind: jsontree.Number, Text: strings.Trim(javaNumber(f, 64), `"`)}
}

// appendNumber prints the text of a number as Java prints the number.
func appendNumber(dst []byte, text string) []byte {
	switch {
	case text == "-0":
		return append(dst, '0')
	case !isDouble(text):
		return append(dst, text...)
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range gives an infinity, as in Java
	return append(dst, javaNumber(f, 64)...)
}

// javaNumber prints a float (bits 32) or double (bits 64) as Java prints it in JSON: always
// with a point, with an exponent outside 0.001 to 10,000,000, and NaN and infinities as
// strings.
func javaNumber(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return `"NaN"`
	case math.IsInf(f, 1):
		return `"Infinity"`
	case math.IsInf(f, -1):
		return `"-Infinity"`
	}
	if a := math.Abs(f); a == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, bits), "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	return mantissa + "E" + sign + strings.TrimLeft(exponent, "+-0")
}

// javaParseDouble parses as Java's Double.parseDouble does: a decimal or hexadecimal number
// with an optional type letter, NaN or Infinity, surrounded by white space.
func javaParseDouble(s string) (float64, bool) {
	s = strings.TrimFunc(s, func(c rune) bool { return c <= ' ' })
	bare := strings.TrimLeft(s, "+-")
	if len(s)-len(bare) > 1 {
		return 0, false
	}
	switch {
	case bare == "NaN":
		return math.NaN(), true
	case s == "-Infinity":
		return math.Inf(-1), true
	case bare == "Infinity":
		return math.Inf(1), true
	case bare == "" || strings.Contains(bare, "_") || !strings.ContainsAny(bare[:1], ".0123456789"):
		return 0, false
	}
	// A hexadecimal number must have an exponent; a type letter may follow.
	hex := strings.HasPrefix(bare, "0x") || strings.HasPrefix(bare, "0X")
	if hex && !strings.ContainsAny(bare, "pP") {
		return 0, false
	}
	if strings.ContainsAny(s[len(s)-1:], "fFdD") {
		s = s[:len(s)-1]
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}
