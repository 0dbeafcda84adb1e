package natsserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// External says how to reach NATS servers that somebody else runs.
type External struct {
	// URLs of the servers: nats://, tls://.
	URLs []string
	// Credentials is the name of a credentials file; "" for none.
	Credentials string
	// TLS for the connection; nil leaves it to the URLs.
	TLS *tls.Config
	// Replicas is how many servers will keep each stream.
	Replicas int
	// Monitoring are the addresses (http://host:8222) where each server tells of
	// itself. Without them nobody can see whether writes are synced.
	Monitoring []string
}

const (
	minMajor, minMinor = 2, 12
	checkTimeout       = 10 * time.Second
	maxMonitoring      = 1 << 20 // bytes of an answer
)

// Problem is something about external servers that is not as it has to be.
type Problem struct {
	// Reason is one word for a condition.
	Reason string
	// Message says what is wrong and what to do about it.
	Message string
	// Fatal says that nothing works with it. Otherwise it works, with less than is
	// promised.
	Fatal bool
}

// Remote is a connection to external servers.
type Remote struct {
	conn *nats.Conn
	o    External
	http *http.Client
}

// Dial connects to external servers. What they are like is for Check to find out.
func Dial(o External) (*Remote, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("connecting to NATS: no address")
	}
	opts := []nats.Option{func(n *nats.Options) error {
		n.Servers = o.URLs
		return nil
	}}
	if o.Credentials != "" {
		opts = append(opts, nats.UserCredentials(o.Credentials))
	}
	if o.TLS != nil {
		opts = append(opts, nats.Secure(o.TLS))
	}
	conn, err := connect("freshet", opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w", strings.Join(o.URLs, ", "), err)
	}
	transport := &http.Transport{TLSClientConfig: o.TLS, DisableKeepAlives: true}
	return &Remote{conn: conn, o: o, http: &http.Client{Transport: transport, Timeout: checkTimeout}}, nil
}

// Conn is the connection.
func (r *Remote) Conn() *nats.Conn { return r.conn }

// Close ends the connection.
func (r *Remote) Close() { r.conn.Close() }

// Check says what about the servers is not as it has to be. It makes a stream and
// removes it again.
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
		problems = append(problems, Problem{"VersionTooOld", fmt.Sprintf("the NATS server at %s has version %q; use %d.%d or later", r.conn.ConnectedUrlRedacted(), v, minMajor, minMinor), true})
	}
	if n := r.conn.MaxPayload(); n < MinMaxPayload {
		problems = append(problems, Problem{"MaxPayloadTooSmall", fmt.Sprintf("the NATS server at %s takes messages of %d bytes at most; set max_payload to %d or more on every server", r.conn.ConnectedUrlRedacted(), n, MinMaxPayload), true})
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

// checkStreams finds out by using them.
func (r *Remote) checkStreams(ctx context.Context) []Problem {
	fatal := func(reason, format string, args ...any) []Problem {
		return []Problem{{reason, fmt.Sprintf(format, args...), true}}
	}
	js, err := jetstream.New(r.conn)
	if err != nil {
		return fatal("JetStreamUnavailable", "JetStream cannot be used: %v", err)
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return fatal("JetStreamUnavailable", "JetStream does not answer for this account: %v; enable jetstream on the servers and for the account", err)
	}
	if account.Limits.MaxBytesRequired {
		return fatal("LimitsTooNarrow", "the NATS account requires max_bytes of every stream; journals have none: allow streams without")
	}
	name := "freshet-check-" + rand.Text()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Replicas: max(r.o.Replicas, 1), AllowDirect: true})
	if err != nil {
		return fatal("StreamsRefused", "a stream with %d replicas cannot be made: %v; there must be as many servers with JetStream, and room in the account's limits", max(r.o.Replicas, 1), err)
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
		return fatal("StreamsRefused", "a stream can be made but not used: %v; the account needs its subjects and the JetStream API", err)
	}
	return nil
}

// checkSync asks each server whether it syncs every write.
func (r *Remote) checkSync(ctx context.Context) (problems []Problem) {
	const remedy = "set sync_interval: always in the jetstream block of every server"
	if len(r.o.Monitoring) == 0 {
		return []Problem{{"SyncUnknown", "it cannot be seen whether the NATS servers sync every write, because no monitoring address is configured; without that, what was acknowledged is lost when a majority loses power at once: " + remedy, false}}
	}
	for _, address := range r.o.Monitoring {
		always, err := r.syncs(ctx, address)
		switch {
		case err != nil:
			problems = append(problems, Problem{"SyncUnknown", fmt.Sprintf("it cannot be seen whether the NATS server at %s syncs every write: %v", address, err), false})
		case !always:
			problems = append(problems, Problem{"SyncNotAlways", fmt.Sprintf("the NATS server at %s does not sync every write: what was acknowledged is lost when a majority loses power at once; %s", address, remedy), false})
		}
	}
	return problems
}

func (r *Remote) syncs(ctx context.Context, address string) (bool, error) {
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
		return false, fmt.Errorf("it answers %s", res.Status)
	}
	var answer struct {
		Config struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxMonitoring)).Decode(&answer)
	return answer.Config.SyncAlways, err
}
