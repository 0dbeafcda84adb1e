package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent is the maximum size of one line of an event: the largest message in base64 with its
// metadata.
const maxEvent = 32 << 20

// event is a server-sent event.
type event struct {
	kind string
	id   string
	data []byte
	beat bool // a comment, which the server sends as a heartbeat when it has no messages
}

// events reads server-sent events from a response.
type events struct{ lines *bufio.Scanner }

func newEvents(body io.Reader) *events {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	return &events{lines: lines}
}

// next returns the next event or heartbeat.
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
		case "id":
			next.id = string(value)
		case "data":
			if next.data != nil {
				next.data = append(next.data, '\n')
			}
			next.data = append(next.data, value...)
		}
	}
	if err := e.lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return next, permanent(errors.New("event of the server is too long"))
	} else if err != nil {
		return next, err
	}
	return next, io.EOF
}
