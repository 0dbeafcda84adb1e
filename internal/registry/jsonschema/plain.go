package jsonschema

import (
	"encoding/json"
	"strconv"

	"freshet/internal/registry/jsontree"
)

// plain converts v to the maps and slices that the validation library reads.
func plain(v *jsontree.Value) any {
	switch v.Kind {
	case jsontree.True, jsontree.False:
		return v.Kind == jsontree.True
	case jsontree.Number:
		return plainNumber(v.Text)
	case jsontree.String:
		return v.Text
	case jsontree.Array:
		items := make([]any, v.Len())
		for i, item := range v.Elements() {
			items[i] = plain(item)
		}
		return items
	case jsontree.Object:
		members := make(map[string]any, v.Len())
		for name, item := range v.Members() {
			members[name] = plain(item)
		}
		return members
	}
	return nil
}

// plainNumber returns the literal, or an approximation with at most maxScale digits and
// exponent. The library uses big.Rat, in which a large exponent needs as many digits.
func plainNumber(literal string) json.Number {
	const maxScale = 400
	d := parseDecimal(literal)
	if d.exponent <= maxScale && d.exponent >= -maxScale && len(d.digits) <= maxScale {
		return json.Number(literal)
	}
	d.digits = d.digits[:min(len(d.digits), maxScale)]
	d.exponent = min(max(d.exponent, -maxScale), maxScale)
	sign := ""
	if d.negative {
		sign = "-"
	}
	return json.Number(sign + "0." + d.digits + "e" + strconv.FormatInt(d.exponent, 10))
}
