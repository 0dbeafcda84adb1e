package filter

import "bytes"

// The functions below skip JSON without building values. They accept only valid JSON, except that
// the characters of strings are not checked.

func skipSpace(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r') {
		at++
	}
	return at
}

// skipJSON returns the end of the value that begins at a position.
func skipJSON(data []byte, at, depth int) (int, error) {
	if at >= len(data) {
		return 0, errJSON
	}
	switch data[at] {
	case '"':
		return skipString(data, at)
	case '{', '[':
		if depth >= maxDepth {
			return 0, errJSONDepth
		}
		return skipMembers(data, at, depth)
	case 't':
		return skipWord(data, at, "true")
	case 'f':
		return skipWord(data, at, "false")
	case 'n':
		return skipWord(data, at, "null")
	}
	return skipNumber(data, at)
}

// skipMembers skips an object or a list.
func skipMembers(data []byte, at, depth int) (end int, err error) {
	named, closing := data[at] == '{', data[at]+2 // in ASCII, { and [ are two before } and ]
	if at = skipSpace(data, at+1); at < len(data) && data[at] == closing {
		return at + 1, nil
	}
	for {
		if named {
			if at, err = skipString(data, at); err != nil {
				return 0, err
			}
			if at = skipSpace(data, at); at == len(data) || data[at] != ':' {
				return 0, errJSON
			}
			at = skipSpace(data, at+1)
		}
		if at, err = skipJSON(data, at, depth+1); err != nil {
			return 0, err
		}
		if at = skipSpace(data, at); at == len(data) {
			return 0, errJSON
		}
		switch data[at] {
		case closing:
			return at + 1, nil
		case ',':
			at = skipSpace(data, at+1)
		default:
			return 0, errJSON
		}
	}
}

// skipString skips a quoted string.
func skipString(data []byte, at int) (int, error) {
	if at >= len(data) || data[at] != '"' {
		return 0, errJSON
	}
	for at++; ; at++ {
		n := bytes.IndexByte(data[at:], '"')
		if n < 0 {
			return 0, errJSON
		}
		at += n
		escapes := 0
		for data[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1, nil
		}
	}
}

func skipWord(data []byte, at int, word string) (int, error) {
	if !bytes.HasPrefix(data[at:], []byte(word)) {
		return 0, errJSON
	}
	return at + len(word), nil
}

// skipNumber skips a number: an optional sign, digits without a leading zero, a fraction and an
// exponent.
func skipNumber(data []byte, at int) (int, error) {
	if at < len(data) && data[at] == '-' {
		at++
	}
	whole := at
	at, ok := skipDigits(data, at)
	if !ok || data[whole] == '0' && at > whole+1 {
		return 0, errJSON
	}
	if at < len(data) && data[at] == '.' {
		if at, ok = skipDigits(data, at+1); !ok {
			return 0, errJSON
		}
	}
	if at < len(data) && (data[at] == 'e' || data[at] == 'E') {
		at++
		if at < len(data) && (data[at] == '+' || data[at] == '-') {
			at++
		}
		if at, ok = skipDigits(data, at); !ok {
			return 0, errJSON
		}
	}
	return at, nil
}

func skipDigits(data []byte, at int) (end int, ok bool) {
	end = at
	for end < len(data) && data[end] >= '0' && data[end] <= '9' {
		end++
	}
	return end, end > at
}
