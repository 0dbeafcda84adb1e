package messagecmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"freshet.dev/client"
)

// The formats of standard input.
const (
	inputLines = "lines"
	inputJSON  = "json"
)

// maxMessage limits the size of a message in bytes. It is larger than a server accepts.
const maxMessage = 16 << 20

// input has the flags that select the source and the format of messages.
type input struct {
	files     []string
	zero      bool
	form      string
	separator string
}

// inMessage is a message and its source for error messages, such as "line 3".
type inMessage struct {
	client.Message
	location string
}

// read yields messages from the first source that is set: --null-value, the command line,
// files, standard input.
func (in *input) read(ctx context.Context, stdin io.Reader, messages []string,
	nullValue bool,
) iter.Seq2[inMessage, error] {
	return func(yield func(inMessage, error) bool) {
		switch {
		case nullValue:
			yield(inMessage{client.Message{NullValue: true}, "the message"}, nil)
		case len(messages) > 0:
			for i, text := range messages {
				if !yield(inMessage{client.Message{Value: []byte(text)}, fmt.Sprintf("message %d", i+1)}, nil) {
					return
				}
			}
		case len(in.files) > 0:
			for _, name := range in.files {
				value, err := readFile(name, stdin)
				if !yield(inMessage{client.Message{Value: value}, name}, err) || err != nil {
					return
				}
			}
		default:
			in.lines(ctx, stdin, yield)
		}
	}
}

// readFile reads a whole file, or standard input.
func readFile(name string, stdin io.Reader) ([]byte, error) {
	source := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // only read
		source = file
	} else {
		name = "standard input"
	}
	value, err := io.ReadAll(io.LimitReader(source, maxMessage+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(value) > maxMessage {
		return nil, fmt.Errorf("%s is larger than the maximum of a message, %d bytes", name, maxMessage)
	}
	return value, nil
}

func (in *input) lines(ctx context.Context, stdin io.Reader, yield func(inMessage, error) bool) {
	scanner := bufio.NewScanner(stdin)
	scanner.Buffer(make([]byte, 64<<10), maxMessage)
	end, what := byte('\n'), "line"
	if in.zero {
		end, what = 0, "message"
	}
	scanner.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, end); i >= 0 {
			return i + 1, data[:i], nil
		}
		if atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	for n := 1; ctx.Err() == nil && scanner.Scan(); n++ {
		location := fmt.Sprintf("%s %d", what, n)
		message, err := in.line(bytes.Clone(scanner.Bytes()))
		if err != nil {
			yield(inMessage{}, fmt.Errorf("%s: %w", location, err))
			return
		}
		if !yield(inMessage{message, location}, nil) {
			return
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		yield(inMessage{}, fmt.Errorf("%s is larger than the maximum of a message, %d bytes", what, maxMessage))
	} else if err != nil {
		yield(inMessage{}, fmt.Errorf("reading standard input: %w", err))
	}
}

// line parses one line.
func (in *input) line(text []byte) (client.Message, error) {
	if in.form == inputJSON {
		return parseMessage(text)
	}
	if in.separator == "" {
		return client.Message{Value: text}, nil
	}
	key, value, ok := strings.Cut(string(text), in.separator)
	if !ok {
		return client.Message{}, fmt.Errorf("separator %q between key and message is missing", in.separator)
	}
	return client.Message{Key: key, Value: []byte(value)}, nil
}

// parseMessage parses a JSON object in the format that consume prints.
func parseMessage(text []byte) (client.Message, error) {
	var in jsonMessage
	if err := json.Unmarshal(text, &in); err != nil {
		return client.Message{}, fmt.Errorf("parsing the message as JSON: %w", err)
	}
	m := client.Message{Key: in.Key, NullValue: in.NullValue, Properties: in.Properties}
	if in.EventTime != nil {
		m.EventTime = *in.EventTime
	}
	switch {
	case in.NullValue:
		return m, nil
	case len(in.Value) == 0:
		return m, errors.New("value is missing; set \"nullValue\": true for a message without a value")
	case in.Encoding == "json" || in.Encoding == "" && in.Value[0] != '"':
		m.Value = in.Value
		return m, nil
	}
	var value string
	if err := json.Unmarshal(in.Value, &value); err != nil {
		return m, errors.New("value is not a string; set \"encoding\": \"json\" for other JSON")
	}
	switch in.Encoding {
	case "", "text":
		m.Value = []byte(value)
	case "base64":
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return m, errors.New("value is not base64")
		}
		m.Value = raw
	default:
		return m, fmt.Errorf("encoding %q is unknown; use text, json or base64", in.Encoding)
	}
	return m, nil
}
