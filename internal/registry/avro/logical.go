package avro

import (
	"math"
	"strconv"

	"freshet/internal/registry/jsontree"
)

// logicalKinds has the logical types of Avro's Java library, with the types that they may
// annotate.
var logicalKinds = map[string][]kind{
	"decimal":                {kindBytes, kindFixed},
	"big-decimal":            {kindBytes},
	"duration":               {kindFixed},
	"uuid":                   {kindString, kindFixed},
	"date":                   {kindInt},
	"time-millis":            {kindInt},
	"time-micros":            {kindLong},
	"timestamp-millis":       {kindLong},
	"timestamp-micros":       {kindLong},
	"timestamp-nanos":        {kindLong},
	"local-timestamp-millis": {kindLong},
	"local-timestamp-micros": {kindLong},
	"local-timestamp-nanos":  {kindLong},
}

// javaProps are properties that exclude a logical type.
var javaProps = []string{"avro.java.string", "java-class", "java-key-class", "java-element-class"}

// logicalType returns the logical type of a schema. It is "" if the schema has none, or one
// that is unknown or not allowed for its type: such a property has no effect.
func (n *node) logicalType() string {
	p := n.prop("logicalType")
	if p == nil || p.Kind != jsontree.String {
		return ""
	}
	fits := false
	for _, k := range logicalKinds[p.Text] {
		fits = fits || k == n.kind
	}
	for _, key := range javaProps {
		if j := n.prop(key); j != nil && j.Kind == jsontree.String {
			fits = false
		}
	}
	switch {
	case !fits,
		p.Text == "decimal" && !validDecimal(n),
		p.Text == "duration" && n.named.size != 12,
		p.Text == "uuid" && n.kind == kindFixed && n.named.size != 16:
		return ""
	}
	return p.Text
}

// validDecimal checks precision and scale of a decimal.
func validDecimal(n *node) bool {
	precision, ok := intProp(n, "precision")
	if !ok || precision <= 0 {
		return false
	}
	if n.kind == kindFixed && float64(precision) > math.Floor(math.Log10(2)*float64(8*n.named.size-1)) {
		return false
	}
	if n.prop("scale") == nil {
		return true
	}
	scale, ok := intProp(n, "scale")
	return ok && scale >= 0 && scale <= precision
}

// intProp returns a property that is an integer of 32 bits.
func intProp(n *node, key string) (int, bool) {
	p := n.prop(key)
	if p == nil || !fits32(p) {
		return 0, false
	}
	i, err := strconv.Atoi(p.Text)
	return i, err == nil
}

// logicalProps returns the properties of the logical type of a schema in their normalized
// order. A scale of 0 is the default and is omitted.
func logicalProps(n *node) []string {
	switch n.logicalType() {
	case "":
		return nil
	case "decimal":
		if scale, ok := intProp(n, "scale"); ok && scale != 0 {
			return []string{"logicalType", "precision", "scale"}
		}
		return []string{"logicalType", "precision"}
	}
	return []string{"logicalType"}
}
