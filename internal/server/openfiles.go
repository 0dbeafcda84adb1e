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

// fileBudget divides the limit of open files of the process, so that connections cannot prevent
// the stores from opening files. etcd exits if it cannot open a file.
type fileBudget struct {
	connections int // of all listeners together
	tables      int // of all clusters together
}

const (
	// maxOpenTables is enough for the clusters of one machine. The stores close and reopen
	// further tables as needed.
	maxOpenTables = 1000
	// maxOtherFiles is for the logs of the stores, connections to etcd, and others.
	maxOtherFiles = 1000
	// fileDivisor bounds the shares of tables and of others to this fraction of the limit.
	fileDivisor = 4
)

func divideFiles(limit uint64) fileBudget {
	total := int(min(limit, 1<<30))
	share := max(1, total/fileDivisor)
	tables, others := min(maxOpenTables, share), min(maxOtherFiles, share)
	return fileBudget{connections: max(1, total-tables-others), tables: tables}
}

// divideOpenFiles reads the limit of open files. It logs if the limit allows fewer
// connections than the configuration, as a warning if it allows less than half of them.
func divideOpenFiles(cfg *config.Config, log *slog.Logger) fileBudget {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("limit of open files cannot be read; assuming no limit", slog.Any("error", err))
		limit.Cur = syscall.RLIM_INFINITY & (1<<63 - 1)
	}
	f := divideFiles(limit.Cur)
	if f.connections < cfg.Limits.Connections {
		level := slog.LevelInfo
		if f.connections < cfg.Limits.Connections/2 {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "limit of open files allows fewer connections than the "+
			"configuration; raise it, for example with ulimit -n",
			slog.Uint64("open_files", limit.Cur), slog.Int("connections", f.connections),
			slog.Int("configured", cfg.Limits.Connections))
	}
	return f
}

// connectionLimit is a semaphore for open connections. Several listeners can share it.
type connectionLimit chan struct{}

// apply returns a listener that accepts connections only below the limit.
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

// CloseWrite closes one direction. net/http calls it after it has rejected a request whose
// body is still arriving, so that the client can read the response.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
