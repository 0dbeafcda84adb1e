package etcd

import (
	"context"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Endpoints describes how to reach etcd.
type Endpoints struct {
	URLs     []string
	CAFile   string
	CertFile string
	KeyFile  string
	// Dialer connects to a host of the URLs; nil means over the network.
	Dialer Dialer
	// Member is the member in this process; nil if etcd is external.
	Member *Member
}

// Dialer opens connections to etcd; pipe.Listener implements it.
type Dialer interface {
	Dial(ctx context.Context) (net.Conn, error)
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
	if e.Dialer != nil {
		cfg.DialOptions = append(cfg.DialOptions,
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return e.Dialer.Dial(ctx)
			}))
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
