package web

import (
	"regexp"
	"strings"
)

// DecodeText rewrites the text of a decoder's error for the caller: the path of the
// field, the expected type and the value that was sent. The original text names types of
// this program, which mean nothing to a caller. Other texts are returned unchanged.
func DecodeText(text string) string {
	for _, rule := range decodeRules {
		if strings.Contains(text, rule.marker) {
			text = rule.pattern.ReplaceAllStringFunc(text, func(found string) string {
				return rule.rewrite(rule.pattern.FindStringSubmatch(found))
			})
		}
	}
	return text
}

// decodeRule rewrites one form of error. Every text of that form contains sign; checking
// for it is cheaper than matching the pattern.
type decodeRule struct {
	marker  string
	pattern *regexp.Regexp
	rewrite func(parts []string) string
}

// goType matches the printed name of a Go type.
const goType = `(struct \{.*\}|\S*interface \{\}|[^\s,;)]+)`

// unmarshalError matches the beginning of an error of encoding/json, with the prefixes
// that Kubernetes' decoders add.
const unmarshalError = `(?:error unmarshaling JSON: )?(?:while decoding JSON: )?` +
	`json: cannot unmarshal (\w+)(?: (\S+))? into Go `

var decodeRules = []decodeRule{
	{
		"version/kind", regexp.MustCompile(`couldn't get version/kind; json parse error: `),
		func([]string) string { return "" },
	},
	{
		"cannot unmarshal", regexp.MustCompile(
			unmarshalError + `struct field [^\s.]*\.(\S+) of type ` + goType),
		func(p []string) string {
			return p[3] + ": expected " +
				typeInWords(p[4]) + ", not " + valueInWords(p[1], p[2])
		},
	},
	{
		"cannot unmarshal", regexp.MustCompile(
			unmarshalError + `value of type ` + goType),
		func(p []string) string { return "expected " + typeInWords(p[3]) + ", not " + valueInWords(p[1], p[2]) },
	},
	{
		"unknown field", regexp.MustCompile(`json: unknown field`),
		func([]string) string { return "unknown field" },
	},
	{
		"parsing time", regexp.MustCompile(
			`parsing time ("(?:[^"\\]|\\.)*")(?: as "[^"]*": cannot parse "(?:[^"\\]|\\.)*" as "[^"]*"|` +
				`: \w+ out of range|: extra text: "(?:[^"\\]|\\.)*")`),
		func(p []string) string { return p[1] + " is not a time of the form 2006-01-31T15:04:05Z (RFC 3339)" },
	},
	{
		"quantities must match", regexp.MustCompile(`quantities must match the regular expression '[^']*'`),
		func([]string) string { return "a quantity is a number with or without a unit, such as 500m, 2 or 4Gi" },
	},
	{
		", got &", regexp.MustCompile(
			`(?m)expected (\w+)(?: \([^)]*\))?, got &(?:value\.valueUnstructured\{Value:(.*)\}|\{(.*)\})$`),
		func(p []string) string { return "expected " + typeInWords(p[1]) + ", not " + shortValue(p[2]+p[3]) },
	},
	{
		"cannot convert", regexp.MustCompile(`cannot convert (\w+) to (\w+)`),
		func(p []string) string { return "expected " + typeInWords(p[2]) + ", not " + typeInWords(p[1]) },
	},
	{
		"cannot restore", regexp.MustCompile(`cannot restore (\w+) from: (\w+)`),
		func(p []string) string { return "expected " + typeInWords(p[1]) + ", not " + typeInWords(p[2]) },
	},
	{
		"strconv.", regexp.MustCompile(
			`strconv\.(Parse\w+|Atoi): parsing ("(?:[^"\\]|\\.)*"): (invalid syntax|value out of range)`),
		func(p []string) string {
			if p[3] != "invalid syntax" {
				return p[2] + " is out of range"
			}
			return p[2] + " is not " + typeInWords(strings.ToLower(strings.TrimPrefix(p[1], "Parse")))
		},
	},
}

// typeInWords returns the JSON values that a type accepts, in words.
func typeInWords(typeName string) string {
	name := strings.TrimLeft(typeName, "*")
	switch name {
	case "string":
		return "a string"
	case "bool", "boolean":
		return "true or false"
	case "int", "int64", "atoi":
		return "a whole number"
	case "int8", "int16":
		return "a small whole number"
	case "int32":
		return "a whole number up to 2147483647"
	case "uint", "uint8", "uint16", "uint32", "uint64":
		return "a whole number that is not negative"
	case "float", "float32", "float64", "numeric":
		return "a number"
	case "list", "slice", "array":
		return "an array"
	}
	if strings.HasPrefix(name, "[") {
		return "an array"
	}
	return "an object"
}

// valueInWords returns the JSON value that was sent, in words.
func valueInWords(kind, value string) string {
	switch {
	case value != "":
		return value
	case kind == "array" || kind == "object":
		return "an " + kind
	case kind == "bool":
		return "true or false"
	}
	return "a " + kind
}

// shortValue shortens a printed Go value.
func shortValue(value string) string {
	switch {
	case strings.HasPrefix(value, "map["):
		return "an object"
	case strings.HasPrefix(value, "["):
		return "an array"
	case value == "" || value == "<nil>" || strings.HasSuffix(value, "(nil)"):
		return "null"
	}
	return value
}
