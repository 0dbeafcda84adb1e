package natsserver_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"

	"freshet/internal/ensemble/natsserver"
	"freshet/internal/ensemble/natsserver/natstest"
)

// external runs a server with a client listener, as an operator would.
func external(t *testing.T, change func(*server.Options)) natsserver.ExternalOptions {
	t.Helper()
	o := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
		NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, MaxPayload: natsserver.MinMaxPayload,
		JetStreamMaxStore: 1 << 30,
	}
	change(o)
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("server is not ready within 10 s")
	}
	return natsserver.ExternalOptions{
		URLs: []string{s.ClientURL()}, Replicas: 1,
		Monitoring: []string{fmt.Sprintf("http://%s", s.MonitorAddr())},
	}
}

func TestExternalServersAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		server func(*server.Options)
		client func(*natsserver.ExternalOptions)
		want   []string // reasons, with ! when fatal
	}{
		"good": {want: nil},
		"no JetStream": {
			server: func(o *server.Options) { o.JetStream = false },
			want:   []string{"JetStreamUnavailable!", "SyncNotAlways"},
		},
		"small messages": {
			server: func(o *server.Options) { o.MaxPayload = 1 << 20 },
			want:   []string{"MaxPayloadTooSmall!"},
		},
		"not synced": {server: func(o *server.Options) { o.SyncAlways = false }, want: []string{"SyncNotAlways"}},
		"no monitoring": {
			client: func(e *natsserver.ExternalOptions) { e.Monitoring = nil },
			want:   []string{"SyncUnknown"},
		},
		"unreachable monitoring": {
			client: func(e *natsserver.ExternalOptions) { e.Monitoring = []string{"http://127.0.0.1:9"} },
			want:   []string{"SyncUnknown"},
		},
		"too few servers": {
			client: func(e *natsserver.ExternalOptions) { e.Replicas = 3 },
			want:   []string{"StreamsRefused!"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := external(t, func(o *server.Options) {
				if c.server != nil {
					c.server(o)
				}
			})
			if c.client != nil {
				c.client(&e)
			}
			r, err := natsserver.Dial(e)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var got []string
			for _, p := range r.Check(t.Context()) {
				if p.Fatal {
					p.Reason += "!"
				}
				got = append(got, p.Reason)
				if p.Message == "" {
					t.Errorf("%s: got no message, want one", p.Reason)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestExternalServersThatCannotBeReached(t *testing.T) {
	for _, e := range []natsserver.ExternalOptions{
		{},
		{URLs: []string{"nats://127.0.0.1:9"}},
		{URLs: []string{"nats://127.0.0.1:9"}, Credentials: "/nowhere"},
		{URLs: []string{"nats://127.0.0.1:9"}, CAFile: "/nowhere"},
		{URLs: []string{"nats://127.0.0.1:9"}, CertFile: "/nowhere"},
	} {
		if r, err := natsserver.Dial(e); err == nil {
			r.Close()
			t.Errorf("%v: got a connection, want an error", e)
		}
	}
}

func TestExternalServersBecomeReady(t *testing.T) {
	e := external(t, func(*server.Options) {})
	e.Logger = slog.New(slog.DiscardHandler)
	r, err := natsserver.Dial(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Ready(withTimeout(t, 10*time.Second)), r.Health()); err != nil {
		t.Errorf("ready: got error %v, want none", err)
	}
	conn, err := r.Connect("")
	if err != nil || !conn.IsConnected() {
		t.Errorf("got %v, error %v; want a connection", conn, err)
	}
	r.Close()
	if err := r.Health(); !errors.Is(err, natsserver.ErrNotReady) {
		t.Errorf("closed: got error %v, want %v", err, natsserver.ErrNotReady)
	}
	small := external(t, func(o *server.Options) { o.MaxPayload = 1 << 20 })
	small.Logger = e.Logger
	if r, err = natsserver.Dial(small); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Ready(withTimeout(t, 100*time.Millisecond)); !errors.Is(err, natsserver.ErrNotReady) ||
		!strings.Contains(err.Error(), "max_payload") {
		t.Errorf("small messages: got error %v, want one that names the setting", err)
	}
}

func TestMetricsDescribeTheServer(t *testing.T) {
	t.Parallel()
	c := natstest.New(t, 3)
	ctx := withTimeout(t, time.Minute)
	js := open(t, c, 0)
	c.CreateStream(ctx, js, streamConfig(3))
	led, want := 0.0, map[string]float64{
		"freshet_nats_streams": 1, "freshet_nats_peers": 2, "freshet_nats_healthy": 1,
		"freshet_nats_streams_without_leader": 0, "freshet_nats_stored_limit_bytes": 4 << 30,
	}
	c.Ready()
	for i := range 3 {
		got := gather(t, c.Server(i))
		led += got["freshet_nats_streams_led"]
		for name, v := range want {
			if got[name] != v {
				t.Errorf("server %d: got %s = %v, want %v", i, name, got[name], v)
			}
		}
	}
	if led != 1 {
		t.Errorf("got %v leaders of a stream, want 1", led)
	}
	s := c.Server(0)
	s.Close()
	if got := gather(t, s); got["freshet_nats_healthy"] != 0 {
		t.Errorf("closed: got freshet_nats_healthy = %v, want 0", got["freshet_nats_healthy"])
	}
}

func gather(t *testing.T, s *natsserver.Server) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(s)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		out[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		if !strings.HasPrefix(f.GetName(), "freshet_nats_") {
			t.Errorf("got series %s, want the prefix freshet_nats_", f.GetName())
		}
	}
	return out
}
