package listen

import (
	"context"
	"log/slog"
	"syscall"
)

// Budget divides the limit of open files of the process, so that connections cannot prevent
// the stores from opening files. etcd exits if it cannot open a file.
type Budget struct {
	Connections int // of all listeners together
	Tables      int // of all clusters together
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

func divideFiles(limit uint64) Budget {
	total := int(min(limit, 1<<30))
	share := max(1, total/fileDivisor)
	tables, others := min(maxOpenTables, share), min(maxOtherFiles, share)
	return Budget{Connections: max(1, total-tables-others), Tables: tables}
}

// Kafka returns the connection limit of a listener of the Kafka protocol, for which limit is
// configured. One third of the connections is reserved for HTTP.
func (f Budget) Kafka(limit int) int { return max(1, min(limit, f.Connections*2/3)) }

// DivideOpenFiles reads the limit of open files. It logs if the limit allows fewer
// connections than configured, as a warning if it allows less than half of them.
func DivideOpenFiles(configured int, log *slog.Logger) Budget {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("limit of open files cannot be read; assuming no limit", slog.Any("error", err))
		limit.Cur = syscall.RLIM_INFINITY & (1<<63 - 1)
	}
	f := divideFiles(limit.Cur)
	if f.Connections < configured {
		level := slog.LevelInfo
		if f.Connections < configured/2 {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "limit of open files allows fewer connections than the "+
			"configuration; raise it, for example with ulimit -n",
			slog.Uint64("open_files", limit.Cur), slog.Int("connections", f.Connections),
			slog.Int("configured", configured))
	}
	return f
}
