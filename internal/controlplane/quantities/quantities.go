// Package quantities keeps impossible sizes away from the machinery, which
// takes time without end to read or compare some of them: 1e-999999999 is
// short to write and has a billion digits. It looks at bodies before they are
// decoded, in the three forms they come in; whether a size is one that a
// cluster may have is the business of registry/messagingcluster.
package quantities

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"sigs.k8s.io/yaml"
)

const (
	maxLength   = 64 // characters
	maxExponent = 30
	maxDepth    = 10_000 // what is deeper, no decoder takes
)

// around is the object that the quantities of our kinds stand in.
const around = "resources"

// fields are those quantities.
var fields = []string{"cpu", "memory", "ledgerDisk", "journalDisk"}

// suspicious says that a text has to be looked at closely: it holds a long
// number, a large exponent, or an escape that may hide one. Every body goes
// through this, of whatever size.
func suspicious(data []byte) bool {
	run := 0 // of digits and points
	for i, c := range data {
		switch {
		case c >= '0' && c <= '9' || c == '.':
			if run++; run >= 25 {
				return true
			}
			continue
		case c == '\\':
			return true
		case (c == 'e' || c == 'E') && run > 0 && exponent(data[i+1:]):
			return true
		}
		run = 0
	}
	return false
}

// exponent says whether a text begins with one of two digits or more.
func exponent(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	return len(text) >= 2 && text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9'
}

// CheckJSON looks for impossible quantities in JSON. Of duplicate keys it looks
// at each, as the decoder does. Most bodies have no object for them, and no
// escape that may spell its name: these need no closer look, though a uid in them
// often looks like a large exponent.
func CheckJSON(data []byte) error {
	if (!bytes.Contains(data, []byte(around)) && !bytes.Contains(data, []byte(`\u`))) || !suspicious(data) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return walk(decoder)
}

// CheckYAML looks for impossible quantities in YAML.
func CheckYAML(data []byte) error {
	if !suspicious(data) {
		return nil
	}
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil //nolint:nilerr // the decoder will say what is wrong with it
	}
	return CheckJSON(text)
}

// walk goes through JSON token by token; what is malformed is for the decoder
// to tell.
func walk(decoder *json.Decoder) error {
	var path []string // names of the objects and lists around; "" in a list
	var objects []bool
	name, isName := "", false
	for {
		token, err := decoder.Token()
		if err != nil || len(path) > maxDepth {
			return nil //nolint:nilerr // see above
		}
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{', '[':
				path, objects = append(path, name), append(objects, v == '{')
				name, isName = "", v == '{'
				continue
			}
			path, objects = path[:len(path)-1], objects[:len(objects)-1]
		case string:
			if isName {
				name, isName = v, false
				continue
			}
			err = check(path, name, v)
		case json.Number:
			err = check(path, name, v.String())
		}
		if err != nil {
			return err
		}
		name = ""
		isName = len(objects) > 0 && objects[len(objects)-1]
	}
}

func check(path []string, name, text string) error {
	if len(path) == 0 || path[len(path)-1] != around || !slices.Contains(fields, name) {
		return nil
	}
	if err := possible(text); err != nil {
		at := append(slices.DeleteFunc(slices.Clone(path), func(part string) bool { return part == "" }), name)
		return fmt.Errorf("%s: %w", strings.Join(at, "."), err)
	}
	return nil
}

var (
	errLong     = fmt.Errorf("a quantity may have at most %d characters", maxLength)
	errExponent = fmt.Errorf("the exponent of a quantity must be between -%d and %d", maxExponent, maxExponent)
)

// possible says whether a text can be read as a quantity in no time, should it
// be one at all.
func possible(text string) error {
	if len(text) > maxLength {
		return errLong
	}
	i := strings.LastIndexAny(text, "eE")
	if i < 0 {
		return nil
	}
	exponent, err := strconv.Atoi(strings.TrimSpace(text[i+1:]))
	if errors.Is(err, strconv.ErrRange) || (err == nil && (exponent > maxExponent || exponent < -maxExponent)) {
		return errExponent
	}
	return nil
}

// magic begins every protobuf body.
var magic = []byte("k8s\x00")

// level is one step of the way from a body to its quantities, by field number.
type level []protowire.Number

// way leads through the envelope, the object, its spec, the broker or the
// storage and its resources to the quantities and their text.
var way = []level{{2}, {2}, {7, 8}, {3}, {1, 2, 5, 6}, {1}}

// CheckProtobuf looks for impossible quantities in protobuf.
func CheckProtobuf(data []byte) error {
	rest, ok := bytes.CutPrefix(data, magic)
	if !ok || !suspicious(rest) {
		return nil
	}
	return descend(rest, way)
}

func descend(message []byte, way []level) error {
	if len(way) == 0 {
		return possible(string(message))
	}
	for len(message) > 0 {
		number, wireType, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil // malformed: for the decoder to tell
		}
		message = message[n:]
		value := message
		if n = protowire.ConsumeFieldValue(number, wireType, message); n < 0 {
			return nil
		}
		message = message[n:]
		if wireType != protowire.BytesType || !slices.Contains(way[0], number) {
			continue
		}
		inner, n := protowire.ConsumeBytes(value)
		if n < 0 {
			return nil
		}
		if err := descend(inner, way[1:]); err != nil {
			return err
		}
	}
	return nil
}
