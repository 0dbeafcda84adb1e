package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one line of an event: the largest message in base64 with its
// metadata.
const maxEvent = 32 << 20

// event is a server-sent one.
type event struct {
	kind string
	data []byte
	beat bool // a comment: the server has had nothing to send for a while
}

// events reads server-sent events.
type events struct{ lines *bufio.Scanner }

func newEvents(body io.Reader) *events {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	return &events{lines: lines}
}

// next returns the next event; a comment, the server's heartbeat, is one of them.
// The data is good until the next call.
func (e *events) next() (event, error) {
	next := event{}
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if len(line) == 0 {
			return next, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "":
			next.beat = true
		case "event":
			next.kind = string(value)
		case "data":
			if next.data != nil {
				next.data = append(next.data, '\n')
			}
			next.data = append(next.data, value...)
		}
	}
	if err := e.lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return next, permanent(errors.New("the server's event is too long"))
	} else if err != nil {
		return next, err
	}
	return next, io.EOF
}
