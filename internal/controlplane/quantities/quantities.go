// Package quantities rejects request bodies with quantities that the API machinery would take
// almost forever to parse or compare: 1e-999999999 is short to write and has a billion digits. It
// checks bodies before they are decoded, in JSON, YAML and protobuf. kinds/messagingcluster
// validates whether a quantity is allowed for a cluster.
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
	maxDepth    = 10_000 // deeper nesting is rejected by every decoder
)

// resourcesField is the object that contains the quantities of our kinds.
const resourcesField = "resources"

// quantityFields are the names of the quantities in it.
var quantityFields = []string{"cpu", "memory", "ledgerDisk", "journalDisk"}

// needsFullCheck reports whether a body needs a full check: it contains a long number, a large
// exponent, or an escape that may hide one. Every body passes through it, so it is a single scan.
func needsFullCheck(data []byte) bool {
	digits := 0 // number of digits and points in a row
	for i, c := range data {
		switch {
		case c >= '0' && c <= '9' || c == '.':
			if digits++; digits >= 25 {
				return true
			}
			continue
		case c == '\\':
			return true
		case (c == 'e' || c == 'E') && digits > 0 && exponent(data[i+1:]):
			return true
		}
		digits = 0
	}
	return false
}

// exponent reports whether a text begins with an exponent of two or more digits.
func exponent(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	return len(text) >= 2 && text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9'
}

// CheckJSON returns an error for a body with an oversized quantity. It checks each of duplicate
// keys, as the decoder does. Most bodies have neither the object that contains quantities nor an
// escape that may spell its name, and need no full check. This matters because a uid often looks
// like a large exponent.
func CheckJSON(data []byte) error {
	if (!bytes.Contains(data, []byte(resourcesField)) && !bytes.Contains(data, []byte(`\u`))) || !needsFullCheck(data) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return walkJSON(decoder)
}

// CheckYAML returns an error for a body with an oversized quantity.
func CheckYAML(data []byte) error {
	if !needsFullCheck(data) {
		return nil
	}
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil //nolint:nilerr // the decoder reports malformed YAML
	}
	return CheckJSON(text)
}

// walkJSON reads JSON token by token; the decoder reports malformed JSON later.
func walkJSON(decoder *json.Decoder) error {
	var path []string // names of the enclosing objects and lists; "" in a list
	var objects []bool
	name, isName := "", false
	for {
		token, err := decoder.Token()
		if err != nil || len(path) > maxDepth {
			return nil //nolint:nilerr // the decoder reports malformed JSON
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
			err = checkField(path, name, v)
		case json.Number:
			err = checkField(path, name, v.String())
		}
		if err != nil {
			return err
		}
		name = ""
		isName = len(objects) > 0 && objects[len(objects)-1]
	}
}

func checkField(path []string, name, text string) error {
	if len(path) == 0 || path[len(path)-1] != resourcesField || !slices.Contains(quantityFields, name) {
		return nil
	}
	if err := checkText(text); err != nil {
		at := append(slices.DeleteFunc(slices.Clone(path), func(part string) bool { return part == "" }), name)
		return fmt.Errorf("%s: %w", strings.Join(at, "."), err)
	}
	return nil
}

var (
	errLong     = fmt.Errorf("quantity must have at most %d characters", maxLength)
	errExponent = fmt.Errorf("exponent of the quantity must be between -%d and %d", maxExponent, maxExponent)
)

// checkText returns an error unless a text can be parsed quickly, whether or not it is a valid
// quantity.
func checkText(text string) error {
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

// magic is the prefix of every protobuf body.
var magic = []byte("k8s\x00")

// pathStep contains the field numbers to follow at one level of nested protobuf messages.
type pathStep []protowire.Number

// quantityPath is the path through the envelope, the object, its spec, the broker or the storage, and its
// resources to the quantities and their text.
var quantityPath = []pathStep{{2}, {2}, {7, 8}, {3}, {1, 2, 5, 6}, {1}}

// CheckProtobuf returns an error for a body with an oversized quantity.
func CheckProtobuf(data []byte) error {
	rest, ok := bytes.CutPrefix(data, magic)
	if !ok || !needsFullCheck(rest) {
		return nil
	}
	return walkProtobuf(rest, quantityPath)
}

func walkProtobuf(message []byte, path []pathStep) error {
	if len(path) == 0 {
		return checkText(string(message))
	}
	for len(message) > 0 {
		number, wireType, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil // malformed; the decoder reports it
		}
		message = message[n:]
		value := message
		if n = protowire.ConsumeFieldValue(number, wireType, message); n < 0 {
			return nil
		}
		message = message[n:]
		if wireType != protowire.BytesType || !slices.Contains(path[0], number) {
			continue
		}
		inner, n := protowire.ConsumeBytes(value)
		if n < 0 {
			return nil
		}
		if err := walkProtobuf(inner, path[1:]); err != nil {
			return err
		}
	}
	return nil
}
