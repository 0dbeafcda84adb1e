package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"freshet/internal/base/errs"
	"freshet/internal/broker/groups"
	"freshet/internal/config"
	"freshet/internal/dataplane"
	"freshet/internal/identity"
	"freshet/internal/surfaces/kafkaapi"
)

// stream is the server of the Kafka protocol and its open ports.
type stream struct {
	plain, tls net.Listener // nil if off
	taken      []string     // messages about addresses that other processes use
	turning    []func()     // functions that stop turnAway
	server     *kafkaapi.Server
}

// openStreamPorts opens the ports early, so that an address in use is reported before
// anything else happens. A default address in use is skipped.
func (s *server) openStreamPorts(ctx context.Context) error {
	plain, plainIfFree, secured, securedIfFree := s.cfg.Stream.Addresses()
	for _, port := range []struct {
		flag, address string
		ifFree        bool
		to            *net.Listener
		real          *string
	}{
		{"--stream", plain, plainIfFree, &s.stream.plain, &s.cfg.Stream.Plain},
		{"--stream-tls", secured, securedIfFree, &s.stream.tls, &s.cfg.Stream.TLS},
	} {
		if port.address == config.Off {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", port.address)
		if err != nil {
			if port.ifFree {
				s.stream.taken = append(s.stream.taken,
					fmt.Sprintf("another process uses %s; choose another address with %s", port.address, port.flag))
				*port.real = config.Off
				continue
			}
			return fmt.Errorf("opening the Kafka port: %w; choose another one with %s", err, port.flag)
		}
		s.closers = append(s.closers, func() error {
			_ = listener.Close() // usually its server has closed it already
			return nil
		})
		if tcp, ok := listener.(*net.TCPListener); ok && s.group != nil {
			s.stream.turning = append(s.stream.turning, turnAway(tcp))
		}
		*port.to, *port.real = s.sockets.apply(listener), withPort(port.address, listener.Addr())
	}
	if s.stream.plain != nil {
		s.plan.StreamPlain = s.cfg.Stream.Plain
	}
	if s.stream.tls != nil {
		_, s.plan.StreamTLSPort, _ = net.SplitHostPort(s.cfg.Stream.TLS)
	}
	return nil
}

// openStream serves the Kafka protocol. Until then, connections to a single server waited to
// be accepted, and those to a member were reset.
func (s *server) openStream(context.Context) error {
	if s.stream.plain == nil && s.stream.tls == nil {
		return nil
	}
	s.stream.server = kafkaapi.NewServer(kafkaapi.Options{
		Options: s.surfaceOptions(), Filter: s.identity.policy.Filter, Revision: s.identity.policy.Revision,
		Rules:    s.identity.policy.RulesBeneath,
		Clusters: streamClusters{s}, ListAll: s.cfg.Stream.ListAll,
		Limits: kafkaapi.Limits{
			Frame: int(s.cfg.Stream.Request), Memory: int64(s.cfg.Stream.Memory),
			Connections: streamConnections(s.cfg, s.files),
			WriteStall:  s.cfg.Timeouts.WriteBody.Std(),
		},
		Logger: s.log,
	})
	for _, end := range s.stream.turning {
		end()
	}
	if s.stream.plain != nil {
		s.serveStream(kafkaapi.Listener{
			Name: "plain", Listener: s.stream.plain, Advertised: s.cfg.Stream.Advertised,
			Anonymous: s.anonymous(),
		})
	}
	if s.stream.tls != nil {
		secured := s.tlsConfig.Clone()
		secured.NextProtos = nil
		s.serveStream(kafkaapi.Listener{
			Name: "tls", Listener: s.stream.tls, TLS: secured,
			Advertised: s.cfg.Stream.AdvertisedTLS,
		})
	}
	return nil
}

// streamConnections returns the connection limit of a listener. One third of the connections
// that the limit of open files allows is reserved for HTTP.
func streamConnections(cfg *config.Config, f files) int {
	return max(1, min(cfg.Stream.Connections, f.connections*2/3))
}

// anonymous returns a function that issues tokens of the account stream.anonymous, or nil if
// it is not set. A token is for one connection and never leaves the process.
func (s *server) anonymous() func(*kafkaapi.Cluster) (string, error) {
	organization, name, ok := strings.Cut(s.cfg.Stream.Anonymous, "/")
	if !ok {
		return nil
	}
	return func(c *kafkaapi.Cluster) (string, error) {
		account, ok := s.identity.directory.Account(organization, name)
		switch {
		case !ok:
			return "", fmt.Errorf(
				"service account %s of stream.anonymous does not exist; create it, or remove the setting",
				s.cfg.Stream.Anonymous)
		case account.Admin || account.System:
			return "", fmt.Errorf("service account %s of stream.anonymous is an administrator; use another account",
				s.cfg.Stream.Anonymous)
		}
		token, _, err := s.identity.issuer.AccessToken(account, identity.MaxTokenLifetime, c.Audiences[0])
		return token.Reveal(), err
	}
}

// stopStream finishes the running requests of the Kafka protocol and closes its server. The
// channel is closed when that is done.
func (s *server) stopStream(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s.stream.server == nil {
			return
		}
		if err := s.stream.server.Shutdown(ctx); err != nil {
			s.log.Warn("requests of the Kafka protocol were aborted at the end of the drain time",
				slog.Any("error", err))
		}
	}()
	return done
}

func (s *server) serveStream(l kafkaapi.Listener) {
	go func() {
		if err := s.stream.server.Serve(l); err != nil && !errors.Is(err, kafkaapi.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving the Kafka protocol on %s: %w", l.Addr(), err)
		}
	}()
}

// streamClusters implements kafkaapi.Clusters.
type streamClusters struct{ s *server }

var errNoStream = errs.New(errs.NotFound,
	"cluster does not support the Kafka protocol; add spec.config.protocols.stream to it")

// AtHost implements kafkaapi.Clusters.
func (c streamClusters) AtHost(name string) (*kafkaapi.Cluster, error) {
	found, err := findAtHost(c.s.plane, name)
	return c.serves(found, err)
}

// Default implements kafkaapi.Clusters.
func (c streamClusters) Default() (*kafkaapi.Cluster, error) { return c.AtHost("") }

// Named implements kafkaapi.Clusters.
func (c streamClusters) Named(organization, name string) (*kafkaapi.Cluster, error) {
	found, err := c.s.plane.FindNamed(organization, name)
	return c.serves(found, undisclosed(organization, err))
}

func (c streamClusters) serves(found *dataplane.Cluster, err error) (*kafkaapi.Cluster, error) {
	if err != nil {
		return nil, err
	}
	if !found.Stream {
		return nil, undisclosed(found.Organization, errNoStream)
	}
	coordinator, err := c.s.groupsOf(found)
	if err != nil {
		return nil, undisclosed(found.Organization, err)
	}
	return &kafkaapi.Cluster{
		Organization: found.Organization, Name: found.Name, UID: found.UID,
		Location: found.Location, Scope: found.Scope, Audiences: found.Audiences, Broker: found.Broker,
		Groups: coordinator, Quota: found.Quota,
		Members: c.s.streamMembers(found),
		Serves:  func() bool { return c.s.plane.ServesStream(found.UID) && c.s.alive() },
		Disk:    func() (total, free int64, err error) { return diskBytes(c.s.cfg.DataDir) },
	}, nil
}

// groupsOf returns the coordinator of a cluster's consumer groups.
func (s *server) groupsOf(c *dataplane.Cluster) (*groups.Coordinator, error) {
	name := slog.String("cluster", c.Organization+"/"+c.Name)
	coordinator, err := c.Groups(context.Background(), s.cfg.Stream.InitialDelay.Std(), s.log.With(name))
	if err != nil {
		s.log.Error("consumer groups of a cluster could not be opened", name, slog.Any("error", err))
		return nil, errs.New(errs.Unavailable,
			"consumer groups of the cluster cannot be opened; see the server's log")
	}
	return coordinator, nil
}
