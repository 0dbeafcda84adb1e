package server

import (
	"log/slog"
	"syscall"

	"freshet/internal/config"
)

// files divides what the system lets the process have open, so that no number
// of connections can keep the stores from opening theirs: without one, etcd
// ends the process.
type files struct {
	connections int // per listener
	tables      int // of all clusters together
}

const (
	// manyTables are enough for the clusters of any machine; more are closed and
	// opened again as needed.
	manyTables = 1000
	// fileShare is the part of all files that one listener, or the tables, may
	// have. There are two large listeners; the last part is everybody else's.
	fileShare = 4
)

func divideFiles(limit uint64, connections int) files {
	share := int(min(limit/fileShare, 1<<30))
	return files{connections: min(connections, share), tables: min(manyTables, max(share, 1))}
}

// divideOpenFiles bounds connections to what the system's limit allows.
func divideOpenFiles(cfg *config.Config, log *slog.Logger) files {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("the limit of open files is not known", slog.String("error", err.Error()))
		return files{connections: cfg.Limits.Connections, tables: manyTables}
	}
	f := divideFiles(limit.Cur, cfg.Limits.Connections)
	if f.connections < cfg.Limits.Connections {
		log.Warn("the limit of open files allows fewer connections than the configuration; raise it, for example with ulimit -n",
			slog.Uint64("open_files", limit.Cur), slog.Int("connections", f.connections), slog.Int("configured", cfg.Limits.Connections))
	}
	return f
}
