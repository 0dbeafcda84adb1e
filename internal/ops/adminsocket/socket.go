// Package adminsocket lets commands on the same machine talk to a running server: a
// Unix socket in the data directory, in a directory that only the server's user can
// enter. A process that can open the socket can also read the data directory, so the
// socket needs no further authentication.
//
// A client sends one request as a line of JSON and reads responses, one per line. The
// result of the request, such as a staged copy, exists until the client closes the
// connection. The package has the transport only; server implements the requests. It has
// no locks.
package adminsocket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"freshet/internal/base/errs"
)

const (
	socketDir  = "control"
	socketName = "socket"
	// maxPath is a length of a socket's path that every system supports.
	maxPath = 100
	// maxRequest limits a request, in bytes.
	maxRequest = 4 << 10
)

// Request is the request of a client.
type Request struct {
	Command string `json:"do"`
}

// CommandBackup requests a staged copy: the response names a directory in the data directory,
// which exists until the client closes the connection.
const CommandBackup = "backup"

// CommandLink requests a one-time link to sign in as the system administrator.
const CommandLink = "link"

// Response is a response; a request can have several.
type Response struct {
	Progress string    `json:"progress,omitempty"`
	Staged   string    `json:"staged,omitempty"` // relative to the data directory
	Link     string    `json:"link,omitempty"`
	Expires  time.Time `json:"ends,omitzero"` // expiry of the link
	Error    string    `json:"error,omitempty"`
	Kind     errs.Kind `json:"kind,omitempty"`
}

// Listener accepts clients.
type Listener struct {
	*net.UnixListener
	path     string
	closeDir func() error
}

// Listen opens the socket of a data directory. It replaces a socket that an earlier
// process left behind.
func Listen(dataDir string) (*Listener, error) {
	dir := filepath.Join(dataDir, socketDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the control socket: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory needs the x bit
		return nil, fmt.Errorf("restricting the directory of the control socket to its owner: %w", err)
	}
	path := filepath.Join(dir, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the old control socket: %w", err)
	}
	address, done, err := shorten(dir)
	if err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: address})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the control socket %s: %w", path, err), done())
	}
	l.SetUnlinkOnClose(false) // it only has the shortened path; Close removes the socket
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("restricting the control socket to its owner: %w", err), l.Close(), done())
	}
	return &Listener{l, path, done}, nil
}

// Close stops accepting and removes the socket.
func (l *Listener) Close() error {
	return errors.Join(l.UnixListener.Close(), os.Remove(l.path), l.closeDir())
}

// shorten returns a path of the socket that is short enough for the system. The path is
// valid until done is called.
func shorten(dir string) (address string, done func() error, err error) {
	if address = filepath.Join(dir, socketName); len(address) <= maxPath {
		return address, func() error { return nil }, nil
	}
	opened, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("opening the directory of the control socket: %w", err)
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(opened.Fd())), socketName), opened.Close, nil
}

// Conn is a connection, of the client or of the server.
type Conn struct {
	net.Conn
	in  *json.Decoder
	out *json.Encoder
}

// NewConn returns the server's side of a connection.
func NewConn(c net.Conn) *Conn {
	return &Conn{c, json.NewDecoder(io.LimitReader(c, maxRequest)), json.NewEncoder(c)}
}

// Request reads the request of the client.
func (c *Conn) Request() (r Request, err error) { return r, c.in.Decode(&r) }

// Respond sends a response.
func (c *Conn) Respond(r Response) error { return c.out.Encode(r) }

// WaitClosed waits until the client has closed the connection.
func (c *Conn) WaitClosed() { _, _ = io.Copy(io.Discard, c.Conn) }

// Dial connects to the server that uses a data directory, and sends a request.
func Dial(ctx context.Context, dataDir string, r Request) (*Conn, error) {
	dir := filepath.Join(dataDir, socketDir)
	if _, err := os.Stat(dir); err != nil {
		return nil, errs.Newf(errs.NotFound, "%s is not the data directory of a server that has run: %w", dataDir, err)
	}
	address, done, err := shorten(dir)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	if err = errors.Join(err, done()); err != nil {
		return nil, errs.Newf(errs.Unavailable, "no server is running with data directory %s; "+
			"this command needs a running server: %w", dataDir, err)
	}
	c := &Conn{conn, json.NewDecoder(conn), json.NewEncoder(conn)}
	if err := c.out.Encode(r); err != nil {
		return nil, errors.Join(fmt.Errorf("sending a request to the server: %w", err), conn.Close())
	}
	return c, nil
}

// Next reads the next response. It returns the error of a response as an error.
func (c *Conn) Next() (Response, error) {
	var r Response
	if err := c.in.Decode(&r); err != nil {
		return r, errs.Newf(errs.Unavailable, "server closed the connection; see its log for the reason: %w", err)
	}
	if r.Error != "" {
		return r, errs.New(r.Kind, r.Error)
	}
	return r, nil
}
