package ensemble

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"

	"freshet/internal/ensemble/natsserver"
)

// LogOptions configure this member's NATS server of the message log. Dir is required.
type LogOptions struct {
	Dir    string // of its data
	Listen string // the configured listen address; "" to derive it from that of the member
	Logger *slog.Logger
	// ReportWaiting is called from time to time while the server waits for the other members, because
	// its files are damaged.
	ReportWaiting func(why string)
}

// StartLog starts this member's NATS server of the message log. If its files are damaged, it fetches
// them again from the other members: it returns when all of them are current and the server runs.
func (m *Member) StartLog(ctx context.Context, o LogOptions) (*natsserver.Server, error) {
	own, _ := m.own()
	listen, err := ListenAddress(ctx, o.Listen, own.Log)
	if err != nil {
		return nil, err
	}
	var routes []string
	for _, other := range m.opts.Members {
		if other.Name != own.Name {
			routes = append(routes, other.Log)
		}
	}
	secured := m.credentials.ServerTLS(m.Names())
	secured.RootCAs = m.credentials.Authority()
	return natsserver.Start(ctx, natsserver.Options{
		Name: own.Name, ClusterName: m.joining.EnsembleID, Dir: o.Dir,
		Listen: listen, Advertise: own.Log, Routes: routes, TLS: secured, Logger: o.Logger,
		Integrity: m.integrity, CheckOthers: m.checkOtherLogs, ReportWaiting: o.ReportWaiting,
	})
}

// UseLog sets the message log: the server of StartLog, or a connection to external servers. It
// returns when the log is writable. The caller closes the log.
func (m *Member) UseLog(ctx context.Context, log natsserver.Log) error {
	m.log.Store(&log)
	return log.Ready(ctx)
}

// LogHealth returns nil while the message log is usable.
func (m *Member) LogHealth() error {
	log := m.log.Load()
	if log == nil {
		return natsserver.ErrNotReady // the message log is not open yet
	}
	return (*log).Health()
}

// ConnectLog opens a connection to the message log. It is called after UseLog.
func (m *Member) ConnectLog(name string) (*nats.Conn, error) { return (*m.log.Load()).Connect(name) }

// LogSynced reports whether external NATS servers sync every write, with a reason and a message
// when they do not or it is unknown (known is false). external is false if the members run the
// servers, which then always sync. It is called after UseLog.
func (m *Member) LogSynced() (external, synced, known bool, reason, message string) {
	servers, external := (*m.log.Load()).(*natsserver.Remote)
	if !external {
		return false, true, true, "", ""
	}
	synced, known, reason, message = servers.Synced()
	return true, synced, known, reason, message
}

// logIsExternal reports whether the members do not run the NATS servers.
func (m *Member) logIsExternal() bool {
	log := m.log.Load()
	if log == nil {
		return false
	}
	_, ok := (*log).(*natsserver.Remote)
	return ok
}
