package messaging

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
)

// pairChecker returns the checker of a KEY_VALUE schema. An INLINE payload contains key and value,
// each after its length in four bytes, where -1 means null. A SEPARATED payload is the value, and
// the key is the message key: base64 unless it is a string or BinaryKey is set.
func (s *Schema) pairChecker(how validation) (checker, error) {
	key, value, err := s.split()
	if err != nil {
		return nil, err
	}
	checkKey, err := key.dataCheckerFor(how)
	if err != nil {
		return nil, err
	}
	checkValue, err := value.dataCheckerFor(how)
	if err != nil {
		return nil, err
	}
	separated := s.Properties[propertyEncoding] == encodingSeparated
	return func(m *Message) error {
		var err error
		k, v := []byte(m.Key), m.Payload
		if separated && key.Type != SchemaString && !m.BinaryKey {
			if k, err = base64.StdEncoding.DecodeString(m.Key); err != nil {
				return fmt.Errorf("key: %w", err)
			}
		}
		if !separated {
			var rest []byte
			if k, rest, err = cutLengthPrefixed(m.Payload); err != nil {
				return fmt.Errorf("key: %w", err)
			}
			if v, rest, err = cutLengthPrefixed(rest); err != nil {
				return fmt.Errorf("value: %w", err)
			}
			if len(rest) > 0 {
				return fmt.Errorf("%d bytes follow the value", len(rest))
			}
		}
		if k != nil {
			if err := checkKey(k); err != nil {
				return fmt.Errorf("key: %w", err)
			}
		}
		if v != nil {
			if err := checkValue(v); err != nil {
				return fmt.Errorf("value: %w", err)
			}
		}
		return nil
	}, nil
}

// cutLengthPrefixed cuts a length-prefixed part off b.
func cutLengthPrefixed(b []byte) (part, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errors.New("length is cut off")
	}
	n := int32(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n == -1 {
		return nil, b, nil
	}
	if n < 0 || int(n) > len(b) {
		return nil, nil, fmt.Errorf("length %d is out of range", n)
	}
	return b[:n:n], b[n:], nil
}
