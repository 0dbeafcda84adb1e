package jsonschema

import (
	"math/big"
	"strconv"
	"strings"

	"freshet/internal/registry/jsontree"
)

// decimal is a number literal in normal form: 0.digits × 10^exponent, without leading or
// trailing zeros in digits; zero has no digits. Comparing normal forms is exact, and its
// cost depends only on the length of the literal, not on its exponent.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// exponentLimit is the largest exponent; larger ones are cut to it. No real schema contains
// such a number.
const exponentLimit = 1 << 40

func parseDecimal(literal string) decimal {
	var d decimal
	literal, d.negative = strings.CutPrefix(literal, "-")
	mantissa, power := literal, ""
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa, power = literal[:i], literal[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	d.exponent = int64(len(whole))
	if power != "" {
		n, err := strconv.ParseInt(power, 10, 64)
		if err != nil || n > exponentLimit || n < -exponentLimit {
			n = exponentLimit
			if power[0] == '-' {
				n = -exponentLimit
			}
		}
		d.exponent += n
	}
	stripped := strings.TrimLeft(digits, "0")
	d.exponent -= int64(len(digits) - len(stripped))
	d.digits = strings.TrimRight(stripped, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// key returns a text that is equal for two literals exactly if they are the same number.
func (d decimal) key() string {
	if d.digits == "" {
		return "0"
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + d.digits + "e" + strconv.FormatInt(d.exponent, 10)
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compare returns -1, 0 or 1 as d is less than, equal to or more than e.
func (d decimal) compare(e decimal) int {
	if d.sign() != e.sign() {
		if d.sign() < e.sign() {
			return -1
		}
		return 1
	}
	var magnitude int
	switch {
	case d.exponent != e.exponent:
		magnitude = 1
		if d.exponent < e.exponent {
			magnitude = -1
		}
	default:
		magnitude = strings.Compare(d.digits, e.digits)
	}
	return magnitude * max(d.sign(), -1)
}

// multipleOf reports whether d is an integer multiple of e. It returns false for numbers of
// extreme length or scale, to bound the work.
func (d decimal) multipleOf(e decimal) bool {
	const maxDigits, maxShift = 1000, 2000
	if e.digits == "" || d.digits == "" {
		return d.digits == "" && e.digits != ""
	}
	// d = D × 10^m and e = E × 10^n with integers D and E.
	shift := (d.exponent - int64(len(d.digits))) - (e.exponent - int64(len(e.digits)))
	if len(d.digits) > maxDigits || len(e.digits) > maxDigits || shift > maxShift || shift < -maxShift {
		return false
	}
	dividend, ok1 := new(big.Int).SetString(d.digits, 10)
	divisor, ok2 := new(big.Int).SetString(e.digits, 10)
	if !ok1 || !ok2 {
		return false
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(shift, -shift)), nil)
	if shift >= 0 {
		dividend.Mul(dividend, scale)
	} else {
		divisor.Mul(divisor, scale)
	}
	return new(big.Int).Rem(dividend, divisor).Sign() == 0
}

// compareNumbers compares two numbers by value.
func compareNumbers(a, b *jsontree.Value) int {
	return parseDecimal(a.Text).compare(parseDecimal(b.Text))
}
