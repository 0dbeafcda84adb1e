// Package etcd starts the embedded etcd member that keeps the resources, and
// describes how to reach an external one.
//
// It owns the member's life: open, ready, close. What is stored in it is the
// business of internal/resources; nobody above asks whether the member is
// embedded or remote.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Endpoints says how to reach etcd.
type Endpoints struct {
	URLs     []string
	CAFile   string
	CertFile string
	KeyFile  string
}

// Client opens a client on the endpoints.
func (e Endpoints) Client(log *zap.Logger) (*clientv3.Client, error) {
	cfg := clientv3.Config{
		Endpoints:            e.URLs,
		DialTimeout:          10 * time.Second,
		DialKeepAliveTime:    30 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second,
		Logger:               log,
	}
	if e.CAFile != "" || e.CertFile != "" {
		info := transport.TLSInfo{TrustedCAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}
		tlsConfig, err := info.ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("reading the etcd client certificates: %w", err)
		}
		cfg.TLS = tlsConfig
	}
	return clientv3.New(cfg)
}

// Options tune an embedded member.
type Options struct {
	// Logger of the member; nothing is logged when nil.
	Logger *zap.Logger
	// QuotaBytes bounds the store; 8 GiB when zero.
	QuotaBytes int64
	// Unsafe leaves out fsync. For tests that do not look at durability.
	Unsafe bool
}

const (
	defaultQuota    = 8 << 30
	maxRequestBytes = 2 << 20
	startTimeout    = 60 * time.Second
)

// Member is a running embedded etcd.
type Member struct {
	etcd    *embed.Etcd
	sockets string
	client  string
}

// Start runs a single member that keeps its data in dir and listens on unix
// sockets only this user can reach: etcd has no authentication of its own there.
func Start(ctx context.Context, dir string, opts Options) (*Member, error) {
	// A socket path may hold about 100 bytes, and data directories can be
	// longer, so the sockets get a directory of their own.
	sockets, err := os.MkdirTemp("", "freshet-etcd-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the etcd sockets: %w", err)
	}
	member, err := start(ctx, dir, sockets, opts)
	if err != nil {
		_ = os.RemoveAll(sockets) // the start's error is the one to report
		return nil, err
	}
	return member, nil
}

func start(ctx context.Context, dir, sockets string, opts Options) (*Member, error) {
	cfg, client, err := configure(dir, sockets, opts)
	if err != nil {
		return nil, err
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
	}
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-e.Server.ReadyNotify():
		return &Member{etcd: e, sockets: sockets, client: client}, nil
	case err = <-e.Err():
	case <-e.Server.StopNotify():
		err = errors.New("member stopped while starting")
	case <-timer.C:
		err = fmt.Errorf("member was not ready within %s", startTimeout)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return nil, fmt.Errorf("starting embedded etcd in %s: %w", dir, err)
}

func configure(dir, sockets string, opts Options) (*embed.Config, string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("making the etcd directory: %w", err)
	}
	clientURL := url.URL{Scheme: "unix", Path: filepath.Join(sockets, "client")}
	peerURL := url.URL{Scheme: "unix", Path: filepath.Join(sockets, "peer")}

	cfg := embed.NewConfig()
	cfg.Name = "freshet"
	cfg.Dir = dir
	cfg.ListenClientUrls = []url.URL{clientURL}
	cfg.AdvertiseClientUrls = []url.URL{clientURL}
	cfg.ListenPeerUrls = []url.URL{peerURL}
	// The advertised peer URL is part of the member's stored identity, so it
	// must not change with the sockets' directory; nobody ever dials it.
	advertised := url.URL{Scheme: "http", Host: "localhost:2380"}
	cfg.AdvertisePeerUrls = []url.URL{advertised}
	cfg.InitialCluster = cfg.Name + "=" + advertised.String()
	// One member elects itself: short ticks make that quick.
	cfg.TickMs, cfg.ElectionMs = 10, 50
	cfg.QuotaBackendBytes = cmp.Or(opts.QuotaBytes, defaultQuota)
	cfg.MaxRequestBytes = maxRequestBytes
	cfg.AutoCompactionRetention = "0" // the resource API compacts
	cfg.UnsafeNoFsync = opts.Unsafe
	log := opts.Logger
	if log == nil {
		log = zap.NewNop()
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	if err := cfg.Validate(); err != nil {
		return nil, "", fmt.Errorf("configuring embedded etcd: %w", err)
	}
	return cfg, clientURL.String(), nil
}

// Endpoints says how to reach the member.
func (m *Member) Endpoints() Endpoints { return Endpoints{URLs: []string{m.client}} }

// Failed delivers the error that ended the member, if one ever does.
func (m *Member) Failed() <-chan error { return m.etcd.Err() }

// Close stops the member and removes its sockets.
func (m *Member) Close() error {
	m.etcd.Close()
	return os.RemoveAll(m.sockets)
}
