// Package rawhttp is an HTTP client with little overhead: it writes prepared bytes and
// parses only the necessary parts of a response. Benchmarks use it so that they measure
// the server and not the client.
package rawhttp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
)

// bufferBytes is the size of a connection's read buffer.
const bufferBytes = 8 << 10

// Connection is one connection. It handles one request at a time.
type Connection struct {
	conn net.Conn
	in   *bufio.Reader
	text *textproto.Reader
}

// Dial connects to host:port.
func Dial(address string) (*Connection, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, bufferBytes)
	return &Connection{conn: conn, in: in, text: textproto.NewReader(in)}, nil
}

// Close closes the connection.
func (c *Connection) Close() error { return c.conn.Close() }

// Request returns the bytes of a request for Send. headers are complete lines.
func Request(method, path, token, headers, body string) []byte {
	return fmt.Appendf(nil,
		"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n%s",
		method, path, token, headers, len(body), body)
}

// Send makes one request and returns its status and the value of a header. It discards
// the body, which must have a Content-Length.
func (c *Connection) Send(request []byte, header string) (status int, value string, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, "", err
	}
	line, err := c.text.ReadLineBytes()
	if err != nil {
		return 0, "", err
	}
	if len(line) < 12 {
		return 0, "", fmt.Errorf("malformed status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, "", err
	}
	length := 0
	for {
		line, err := c.text.ReadLineBytes()
		if err != nil {
			return 0, "", err
		}
		if len(line) == 0 {
			break
		}
		name, rest, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "Content-Length":
			if length, err = strconv.Atoi(string(rest)); err != nil {
				return 0, "", err
			}
		case header:
			value = string(rest)
		}
	}
	_, err = io.CopyN(io.Discard, c.in, int64(length))
	return status, value, err
}
