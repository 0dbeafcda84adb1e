package natsserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"freshet/internal/base/retry"
)

// ExternalOptions configures the connection to external NATS servers.
type ExternalOptions struct {
	// URLs of the servers: nats://, tls://.
	URLs []string
	// Credentials is the path of a credentials file; "" for none.
	Credentials string
	// CAFile is the authority of the servers' certificates; "" for the system's. CertFile
	// and KeyFile are the client certificate; "" for none.
	CAFile, CertFile, KeyFile string
	// Replicas is the number of servers that will store each stream.
	Replicas int
	// Monitoring are the addresses of the servers' monitoring endpoints (http://host:8222).
	// Without them it is unknown whether the servers sync writes.
	Monitoring []string
	// Logger receives warnings about problems that are not fatal; nil means
	// slog.Default().
	Logger *slog.Logger
}

const (
	minMajor, minMinor = 2, 12
	checkTimeout       = 10 * time.Second
	checkInterval      = time.Second // between checks of servers that are not usable yet
	syncInterval       = time.Minute // between checks whether writes are synced
	maxMonitoringBytes = 1 << 20     // bytes of a monitoring response
)

// Problem is a requirement that the external servers do not meet.
type Problem struct {
	// Reason is a word for a condition.
	Reason string
	// Message describes the problem and how to fix it.
	Message string
	// Fatal means that Freshet cannot use the servers. Otherwise it can, with fewer
	// guarantees.
	Fatal bool
}

// Log is the replicated log as a member uses it: an embedded server, or external servers.
type Log interface {
	// Connect opens a connection or returns a shared one.
	Connect(name string) (*nats.Conn, error)
	// Ready waits until the log can be written.
	Ready(ctx context.Context) error
	// Health returns nil while the log is usable, as far as this member knows.
	Health() error
	// IsMetaLeader reports whether this member is the JetStream meta leader.
	IsMetaLeader() bool
	// Report describes the streams that this member, or external servers, store.
	Report(ctx context.Context) (*Report, error)
	// StepDown gives up the streams that this member leads and returns their number. It
	// does nothing for external servers.
	StepDown(ctx context.Context) (streams int, err error)
	Close()
}

var (
	_ Log = (*Server)(nil)
	_ Log = (*Remote)(nil)
)

// Remote is a connection to external servers.
type Remote struct {
	conn *nats.Conn
	opts ExternalOptions
	http *http.Client

	syncProblems atomic.Pointer[[]Problem] // result of the latest sync check; nil before Ready
	watch        sync.Once
	closed       chan struct{} // closed by Close
	close        sync.Once
}

// Dial connects to external servers. It does not check them; Check does.
func Dial(o ExternalOptions) (*Remote, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("connecting to NATS: no address is configured")
	}
	opts := []nats.Option{func(n *nats.Options) error {
		n.Servers = o.URLs
		return nil
	}}
	if o.Credentials != "" {
		opts = append(opts, nats.UserCredentials(o.Credentials))
	}
	tlsConfig, err := o.tls()
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	if tlsConfig != nil {
		opts = append(opts, nats.Secure(tlsConfig))
	}
	conn, err := connect("freshet", opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w", strings.Join(o.URLs, ", "), err)
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}
	return &Remote{
		conn: conn, opts: o, http: &http.Client{Transport: transport, Timeout: checkTimeout},
		closed: make(chan struct{}),
	}, nil
}

// tls returns the TLS configuration; nil when none is configured.
func (o ExternalOptions) tls() (*tls.Config, error) {
	if o.CAFile+o.CertFile == "" {
		return nil, nil //nolint:nilnil // no TLS configuration, and no error
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no certificate", o.CAFile)
		}
	}
	if o.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// Connect returns the connection, which all callers share.
func (r *Remote) Connect(string) (*nats.Conn, error) { return r.conn, nil }

// Close closes the connection.
func (r *Remote) Close() {
	r.close.Do(func() { close(r.closed) })
	r.conn.Close()
}

// IsMetaLeader returns false: no external server belongs to this member.
func (r *Remote) IsMetaLeader() bool { return false }

// StepDown does nothing: no external server belongs to this member.
func (*Remote) StepDown(context.Context) (int, error) { return 0, nil }

// Health returns nil while the connection is established.
func (r *Remote) Health() error {
	if !r.conn.IsConnected() {
		return fmt.Errorf("%w: no connection to NATS at %s", ErrNotReady, strings.Join(r.opts.URLs, ", "))
	}
	return nil
}

// Ready waits until the servers have no fatal problem, and logs the others as warnings.
func (r *Remote) Ready(ctx context.Context) error {
	log := cmp.Or(r.opts.Logger, slog.Default())
	for {
		problems := r.Check(ctx)
		var fatal error
		for _, p := range problems {
			if p.Fatal {
				fatal = errors.Join(fatal, fmt.Errorf("%s: %s", p.Reason, p.Message))
			}
		}
		if fatal == nil {
			for _, p := range problems {
				log.LogAttrs(ctx, slog.LevelWarn, p.Message, slog.String("reason", p.Reason))
			}
			r.syncProblems.Store(&problems)
			r.watch.Do(func() { go r.watchSync(log) })
			return nil
		}
		log.LogAttrs(ctx, slog.LevelError, "NATS is not usable; retrying", slog.Any("error", fatal))
		if retry.Sleep(ctx, checkInterval) != nil {
			return fmt.Errorf("%w: %w", ErrNotReady, fatal)
		}
	}
}

// SyncProblems returns the problems with synced writes, at most a minute old; none when every
// server syncs each write. Call it after Ready.
func (r *Remote) SyncProblems() []Problem {
	if known := r.syncProblems.Load(); known != nil {
		return *known
	}
	return nil
}

// Synced reports whether the servers sync every write, with a reason and a message. known is
// false while it is unknown.
func (r *Remote) Synced() (synced, known bool, reason, message string) {
	problems := r.SyncProblems()
	if len(problems) == 0 {
		return true, true, "SyncAlways", "every NATS server syncs every write"
	}
	var texts []string
	for _, p := range problems {
		if p.Reason == "SyncNotAlways" {
			known = true
		}
		texts = append(texts, p.Message)
	}
	reason = "SyncUnknown"
	if known {
		reason = "SyncNotAlways"
	}
	return false, known, reason, strings.Join(texts, "; ")
}

// watchSync checks every minute whether writes are synced, and logs a change.
func (r *Remote) watchSync(log *slog.Logger) {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.closed:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
		now := r.checkSync(ctx)
		cancel()
		before := r.SyncProblems()
		r.syncProblems.Store(&now)
		if slices.Equal(before, now) {
			continue
		}
		if len(now) == 0 {
			log.LogAttrs(context.Background(), slog.LevelInfo, "NATS servers sync every write now")
		}
		for _, p := range now {
			log.LogAttrs(context.Background(), slog.LevelWarn, p.Message, slog.String("reason", p.Reason))
		}
	}
}

// Inspect returns a description of the servers, and the problems that can be detected without
// creating anything there.
func (r *Remote) Inspect(ctx context.Context) (description string, problems []Problem) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	problems = r.checkServer()
	_, account, unusable := r.checkAccount(ctx)
	problems = append(append(problems, unusable...), r.checkSync(ctx)...)
	description = fmt.Sprintf("%s runs version %s and accepts messages of %d bytes", r.conn.ConnectedUrlRedacted(),
		r.conn.ConnectedServerVersion(), r.conn.MaxPayload())
	if account != nil {
		description += fmt.Sprintf("; the account has %d streams (%s) and %d bytes stored (%s)",
			account.Streams, formatLimit(int64(account.Limits.MaxStreams)), account.Store,
			formatLimit(account.Limits.MaxStore))
	}
	return description, problems
}

func formatLimit(n int64) string {
	if n <= 0 {
		return "no limit"
	}
	return fmt.Sprintf("limit %d", n)
}

// Check returns the problems of the servers. It creates a stream and deletes it again.
func (r *Remote) Check(ctx context.Context) []Problem {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	problems := r.checkServer()
	if len(problems) == 0 {
		problems = r.checkStreams(ctx)
	}
	return append(problems, r.checkSync(ctx)...)
}

func (r *Remote) checkServer() (problems []Problem) {
	if v := r.conn.ConnectedServerVersion(); !atLeast(v, minMajor, minMinor) {
		problems = append(problems, Problem{"VersionTooOld", fmt.Sprintf("NATS server at %s has version %q; use "+
			"%d.%d or later", r.conn.ConnectedUrlRedacted(), v, minMajor, minMinor), true})
	}
	if n := r.conn.MaxPayload(); n < MinMaxPayload {
		problems = append(problems, Problem{"MaxPayloadTooSmall", fmt.Sprintf("NATS server at %s accepts messages "+
			"of at most %d bytes; set max_payload to %d or more on every server", r.conn.ConnectedUrlRedacted(), n,
			MinMaxPayload), true})
	}
	return problems
}

// atLeast compares the first two numbers of a version.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

func fatalProblem(reason, format string, args ...any) []Problem {
	return []Problem{{reason, fmt.Sprintf(format, args...), true}}
}

// checkAccount checks what the account of this client may do.
func (r *Remote) checkAccount(ctx context.Context) (jetstream.JetStream, *jetstream.AccountInfo, []Problem) {
	js, err := jetstream.New(r.conn)
	if err != nil {
		return nil, nil, fatalProblem("JetStreamUnavailable", "JetStream is unavailable: %v", err)
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return nil, nil, fatalProblem("JetStreamUnavailable",
			"JetStream does not respond for this account: %v; enable jetstream on the servers and for the account", err)
	}
	if account.Limits.MaxBytesRequired {
		return js, account, fatalProblem("LimitsTooNarrow",
			"NATS account requires max_bytes for every stream, but journals set none; allow streams without it")
	}
	return js, account, nil
}

// checkStreams creates a stream and uses it.
func (r *Remote) checkStreams(ctx context.Context) []Problem {
	js, _, problems := r.checkAccount(ctx)
	if len(problems) > 0 {
		return problems
	}
	name := "freshet-check-" + rand.Text()
	stream, err := js.CreateStream(ctx,
		jetstream.StreamConfig{
			Name: name, Subjects: []string{name + ".>"}, Replicas: max(r.opts.Replicas, 1),
			AllowDirect: true,
		})
	if err != nil {
		return fatalProblem("StreamsRefused", "creating a stream with %d replicas failed: %v; as many servers need "+
			"JetStream, and the account's limits must allow it", max(r.opts.Replicas, 1), err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
		defer cancel()
		_ = js.DeleteStream(ctx, name)
	}()
	_, err = js.Publish(ctx, name+".x", nil, jetstream.WithExpectLastSequence(0))
	if err == nil {
		_, err = stream.GetMsg(ctx, 1)
	}
	if err != nil {
		return fatalProblem("StreamsRefused",
			"created stream cannot be used: %v; the account needs its subjects and the JetStream API", err)
	}
	return nil
}

// checkSync queries each server's monitoring endpoint whether it syncs every write.
func (r *Remote) checkSync(ctx context.Context) (problems []Problem) {
	const remedy = "set sync_interval: always in the jetstream block of every server"
	if len(r.opts.Monitoring) == 0 {
		return []Problem{{"SyncUnknown", "unknown whether the NATS servers sync every write, because no monitoring " +
			"address is configured; without syncing, acknowledged messages are lost when a majority loses power " +
			"at the same time: " + remedy, false}}
	}
	for _, address := range r.opts.Monitoring {
		always, err := r.syncsAlways(ctx, address)
		switch {
		case err != nil:
			problems = append(problems, Problem{"SyncUnknown", fmt.Sprintf("unknown whether the NATS server at %s "+
				"syncs every write: %v", address, err), false})
		case !always:
			problems = append(problems, Problem{
				"SyncNotAlways", fmt.Sprintf("NATS server at %s does not sync every write: acknowledged messages are "+
					"lost when a majority loses power at the same time; %s",
					address, remedy),
				false,
			})
		}
	}
	return problems
}

func (r *Remote) syncsAlways(ctx context.Context, address string) (bool, error) {
	u, err := url.JoinPath(address, "jsz")
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return false, err
	}
	res, err := r.http.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("monitoring endpoint returned %s", res.Status)
	}
	var response struct {
		Config struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxMonitoringBytes)).Decode(&response)
	return response.Config.SyncAlways, err
}
