package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"

	"freshet/internal/config"
)

// files divides what the system lets the process have open, so that no number
// of connections can keep the stores from opening theirs: without one, etcd
// ends the process.
type files struct {
	connections int // of all listeners together
	tables      int // of all clusters together
}

const (
	// manyTables are enough for the clusters of any machine; more are closed and
	// opened again as needed.
	manyTables = 1000
	// manyOthers are logs of the stores, the connections to etcd, and the like.
	manyOthers = 1000
	// fileShare is the part of all files that tables, and others, may have when
	// there are not that many.
	fileShare = 4
)

func divideFiles(limit uint64) files {
	total := int(min(limit, 1<<30))
	share := max(1, total/fileShare)
	tables, others := min(manyTables, share), min(manyOthers, share)
	return files{connections: max(1, total-tables-others), tables: tables}
}

// divideOpenFiles asks the system for its limit and says when that is less
// than the configuration wants: as a warning when it is much less.
func divideOpenFiles(cfg *config.Config, log *slog.Logger) files {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("the limit of open files is not known", slog.String("error", err.Error()))
		limit.Cur = syscall.RLIM_INFINITY & (1<<63 - 1)
	}
	f := divideFiles(limit.Cur)
	if f.connections < cfg.Limits.Connections {
		level := slog.LevelInfo
		if f.connections < cfg.Limits.Connections/2 {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "the limit of open files allows fewer connections than the "+
			"configuration; raise it, for example with ulimit -n",
			slog.Uint64("open_files", limit.Cur), slog.Int("connections", f.connections),
			slog.Int("configured", cfg.Limits.Connections))
	}
	return f
}

// connectionLimit bounds the connections that are open at once, through however
// many listeners.
type connectionLimit chan struct{}

// apply makes a listener that accepts only while it is below the limit.
func (c connectionLimit) apply(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, limit: c, closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	limit  connectionLimit
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.limit <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	release := sync.OnceFunc(func() { <-l.limit })
	conn, err := l.Listener.Accept()
	if err != nil {
		release()
		return nil, err
	}
	return &limitedConn{Conn: conn, release: release}, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite ends one direction. net/http does so when it refuses a request
// whose body is still arriving, so that the client gets to read the answer.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
