// Package adminsocket is how commands on the same machine speak to a running server:
// a unix socket in the data directory, in a folder that only the server's user can
// enter. Whoever reaches it could read the data directory anyway, so it asks for
// nothing more.
//
// A caller sends one request as a line of JSON and reads replies, one a line; the
// connection is the life of what it asked for. What can be asked for is the
// business of server.
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
	folder = "control"
	name   = "socket"
	// maxPath is what every system takes as the path of a socket.
	maxPath = 100
	// maxRequest bounds what a caller may send.
	maxRequest = 4 << 10
)

// Request is what a caller asks for.
type Request struct {
	Do string `json:"do"`
}

// DoBackup asks for a staged copy: the reply names a folder in the data directory,
// which is there until the caller hangs up.
const DoBackup = "backup"

// DoLink asks for a one-time link to sign in with as the system administrator.
const DoLink = "link"

// Reply is one of perhaps several answers.
type Reply struct {
	Progress string    `json:"progress,omitempty"`
	Staged   string    `json:"staged,omitempty"` // relative to the data directory
	Link     string    `json:"link,omitempty"`
	Ends     time.Time `json:"ends,omitzero"` // of the link
	Error    string    `json:"error,omitempty"`
	Kind     errs.Kind `json:"kind,omitempty"`
}

// Listener accepts callers.
type Listener struct {
	*net.UnixListener
	path  string
	close func() error
}

// Listen opens the socket of a data directory, in place of one that an earlier
// process left.
func Listen(dataDir string) (*Listener, error) {
	dir := filepath.Join(dataDir, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the control socket: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder has to be entered
		return nil, fmt.Errorf("closing the folder of the control socket to others: %w", err)
	}
	path := filepath.Join(dir, name)
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
	l.SetUnlinkOnClose(false) // it knows the short path only
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("closing the control socket to others: %w", err), l.Close(), done())
	}
	return &Listener{l, path, done}, nil
}

// Close stops accepting and removes the socket.
func (l *Listener) Close() error {
	return errors.Join(l.UnixListener.Close(), os.Remove(l.path), l.close())
}

// shorten is a path of the socket that is short enough for the system, good until
// done is called.
func shorten(dir string) (address string, done func() error, err error) {
	if address = filepath.Join(dir, name); len(address) <= maxPath {
		return address, func() error { return nil }, nil
	}
	opened, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("opening the folder of the control socket: %w", err)
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(opened.Fd())), name), opened.Close, nil
}

// Conn is one end of a conversation.
type Conn struct {
	net.Conn
	in  *json.Decoder
	out *json.Encoder
}

// NewConn is the server's end.
func NewConn(c net.Conn) *Conn {
	return &Conn{c, json.NewDecoder(io.LimitReader(c, maxRequest)), json.NewEncoder(c)}
}

// Request reads what the caller asks for.
func (c *Conn) Request() (r Request, err error) { return r, c.in.Decode(&r) }

// Reply answers.
func (c *Conn) Reply(r Reply) error { return c.out.Encode(r) }

// HungUp returns when the caller has hung up.
func (c *Conn) HungUp() { _, _ = io.Copy(io.Discard, c.Conn) }

// Dial connects to the server that runs on a data directory, and asks.
func Dial(ctx context.Context, dataDir string, r Request) (*Conn, error) {
	dir := filepath.Join(dataDir, folder)
	if _, err := os.Stat(dir); err != nil {
		return nil, errs.Newf(errs.NotFound, "%s is not the data directory of a server that has run: %w", dataDir, err)
	}
	address, done, err := shorten(dir)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	if err = errors.Join(err, done()); err != nil {
		return nil, errs.Newf(errs.Unavailable, "no server runs on %s, and one has to for this command: %w", dataDir,
			err)
	}
	c := &Conn{conn, json.NewDecoder(conn), json.NewEncoder(conn)}
	if err := c.out.Encode(r); err != nil {
		return nil, errors.Join(fmt.Errorf("asking the server: %w", err), conn.Close())
	}
	return c, nil
}

// Next reads the next reply; one that is an error is returned as such.
func (c *Conn) Next() (Reply, error) {
	var r Reply
	if err := c.in.Decode(&r); err != nil {
		return r, errs.Newf(errs.Unavailable, "the server hung up; it has ended, and its log says why: %w", err)
	}
	if r.Error != "" {
		return r, errs.New(r.Kind, r.Error)
	}
	return r, nil
}
