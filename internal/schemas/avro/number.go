package avro

import (
	"math"
	"strconv"
	"strings"
)

// number reads a JSON number. Like Java it keeps integers exactly and turns
// anything with a point or an exponent into a double.
func (r *reader) number() (value, error) {
	start := r.pos
	if r.text[r.pos] == '-' {
		r.pos++
	}
	intStart := r.pos
	r.digits()
	if r.pos == intStart {
		return value{}, r.unexpected("a digit")
	}
	if r.pos-intStart > 1 && r.text[intStart] == '0' {
		r.pos = intStart
		return value{}, r.fail("Invalid numeric value: Leading zeroes not allowed")
	}
	kind := valueInt
	if r.pos < len(r.text) && r.text[r.pos] == '.' {
		kind = valueDouble
		r.pos++
		if r.digits() == 0 {
			return value{}, r.unexpected("a digit after the decimal point")
		}
	}
	if r.pos < len(r.text) && (r.text[r.pos] == 'e' || r.text[r.pos] == 'E') {
		kind = valueDouble
		r.pos++
		if r.pos < len(r.text) && (r.text[r.pos] == '+' || r.text[r.pos] == '-') {
			r.pos++
		}
		if r.digits() == 0 {
			return value{}, r.unexpected("a digit in the exponent")
		}
	}
	if r.pos < len(r.text) && isNameByte(r.text[r.pos]) {
		return value{}, r.unexpected("the end of a number")
	}
	text := r.text[start:r.pos]
	if len(text) > maxNumberLength {
		return value{}, r.fail("Number value length (%d) exceeds the maximum allowed (%d)", len(text), maxNumberLength)
	}
	if kind == valueDouble {
		f, _ := strconv.ParseFloat(text, 64) // out of range gives an infinity, as in Java
		return doubleValue(f), nil
	}
	return integerValue(text), nil
}

// digits passes digits and returns how many there were.
func (r *reader) digits() int {
	start := r.pos
	for r.pos < len(r.text) && r.text[r.pos] >= '0' && r.text[r.pos] <= '9' {
		r.pos++
	}
	return r.pos - start
}

// integerValue holds an integer of any size.
func integerValue(text string) value {
	if text == "-0" {
		text = "0"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return value{kind: valueBig, text: text}
	case n < math.MinInt32 || n > math.MaxInt32:
		return value{kind: valueLong, text: text}
	}
	return value{kind: valueInt, text: text}
}

// doubleValue holds a double.
func doubleValue(f float64) value {
	return value{kind: valueDouble, text: javaNumber(f, 64)}
}

// float returns the number v as a double.
func (v *value) float() float64 {
	f, _ := strconv.ParseFloat(strings.Trim(v.text, `"`), 64) // out of range gives an infinity
	return f
}

// javaNumber prints a float (bits 32) or double (bits 64) as Java prints it in
// JSON: always with a point, with an exponent outside 0.001 to 10,000,000, and
// what is no number as a string.
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

// javaParseDouble reads what Java's Double.parseDouble reads: a decimal or
// hexadecimal number with an optional type letter, NaN or Infinity, with white
// space around it.
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
