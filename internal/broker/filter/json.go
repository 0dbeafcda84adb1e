package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

var (
	errJSON      = errors.New("payload is not valid JSON")
	errJSONDepth = errors.New("JSON of the payload is nested too deeply")
)

// maxNumber bounds the digits of a number, whose conversion takes more than linear time.
const maxNumber = 400

// decodeJSON decodes a document of a topic whose messages are JSON.
func decodeJSON(b *budget, data []byte) ref.Val {
	start := skipSpace(data, 0)
	if start == len(data) {
		return types.WrapErr(errJSON)
	}
	return jsonValue(b, data[start:])
}

// isJSON reports whether the data is one JSON document. An error means that it cannot be decided
// within the limits.
func isJSON(b *budget, data []byte) (bool, error) {
	if err := b.spend(len(data)); err != nil {
		return false, err
	}
	end, err := skipJSON(data, skipSpace(data, 0), 0)
	if errors.Is(err, errJSONDepth) {
		return false, err
	}
	return err == nil && skipSpace(data, end) == len(data), nil
}

// jsonValue returns the value that data begins with.
func jsonValue(b *budget, data []byte) ref.Val {
	switch data[0] {
	case '{':
		return &object{source: jsonObject(data), budget: b}
	case '[':
		return list(b, func(add func(ref.Val) error) error {
			return jsonMembers(b, data, func(_, value []byte) error { return add(jsonValue(b, value)) })
		})
	case '"':
		text, err := jsonString(b, data)
		if err != nil {
			return types.WrapErr(err)
		}
		return types.String(text)
	}
	end, err := skipJSON(data, 0, 0)
	if err != nil {
		return types.WrapErr(err)
	}
	switch data[0] {
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	return jsonNumber(data[:end])
}

// jsonNumber returns an int or uint for an integer that fits, otherwise a double.
func jsonNumber(digits []byte) ref.Val {
	if len(digits) > maxNumber {
		return types.NewErr("number of the payload has more than %d characters", maxNumber)
	}
	text := string(digits)
	if !bytes.ContainsAny(digits, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(i)
		}
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			return types.Uint(u)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return types.WrapErr(errJSON)
	}
	return types.Double(f)
}

// jsonObject is the text of an object, which more may follow. Of a repeated name the last one counts.
type jsonObject []byte

func (o jsonObject) field(b *budget, name string) (ref.Val, bool) {
	var found []byte
	err := jsonMembers(b, o, func(key, value []byte) error {
		same, err := isName(b, key, name)
		if same {
			found = value
		}
		return err
	})
	switch {
	case err != nil:
		return types.WrapErr(err), true
	case found == nil:
		return nil, false
	}
	return jsonValue(b, found), true
}

func (o jsonObject) each(b *budget, visit func(string, ref.Val) error) error {
	return jsonMembers(b, o, func(key, value []byte) error {
		name, err := jsonString(b, key)
		if err != nil {
			return err
		}
		return visit(name, jsonValue(b, value))
	})
}

// isName reports whether a quoted string is a name.
func isName(b *budget, quoted []byte, name string) (bool, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == name, nil
	}
	text, err := jsonString(b, quoted)
	return text == name, err
}

// jsonString returns the string that data begins with.
func jsonString(b *budget, data []byte) (string, error) {
	end, err := skipString(data, 0)
	if err != nil {
		return "", err
	}
	if err := b.spend(end); err != nil {
		return "", err
	}
	if bytes.IndexByte(data[:end], '\\') < 0 {
		return string(bytes.ToValidUTF8(data[1:end-1], []byte("\uFFFD"))), nil
	}
	var text string
	if err := json.Unmarshal(data[:end], &text); err != nil {
		return "", errJSON
	}
	return text, nil
}

// jsonMembers calls visit for the members of an object, with their quoted names, or for the items of
// a list. The value may be followed by more.
func jsonMembers(b *budget, data []byte, visit func(name, value []byte) error) error {
	closing := byte(']')
	if data[0] == '{' {
		closing = '}'
	}
	at := skipSpace(data, 1)
	if at < len(data) && data[at] == closing {
		return nil
	}
	for {
		var name []byte
		if closing == '}' {
			end, err := skipString(data, at)
			if err != nil {
				return err
			}
			name = data[at:end]
			if at = skipSpace(data, end); at == len(data) || data[at] != ':' {
				return errJSON
			}
			at = skipSpace(data, at+1)
		}
		end, err := skipJSON(data, at, 1)
		if err == nil {
			err = b.spend(end - at + len(name))
		}
		if err == nil {
			err = visit(name, data[at:end])
		}
		if err != nil {
			return err
		}
		if at = skipSpace(data, end); at == len(data) {
			return errJSON
		}
		if data[at] == closing {
			return nil
		}
		if data[at] != ',' {
			return errJSON
		}
		at = skipSpace(data, at+1)
	}
}
