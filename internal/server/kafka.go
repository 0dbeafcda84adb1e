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

// kafkaServer is the server of the Kafka protocol and its open ports.
type kafkaServer struct {
	plain, tls   net.Listener // nil if off
	portsInUse   []string     // messages about addresses that other processes use
	stopTurnAway []func()     // functions that stop resetConnections
	server       *kafkaapi.Server
}

// openKafkaPorts opens the ports early, so that an address in use is reported before
// anything else happens. A default address in use is skipped.
func (s *server) openKafkaPorts(ctx context.Context) error {
	plain, plainIfFree, secured, securedIfFree := s.cfg.Kafka.Addresses()
	for _, port := range []struct {
		flag, address string
		ifFree        bool
		to            *net.Listener
		real          *string
	}{
		{"--stream", plain, plainIfFree, &s.kafka.plain, &s.cfg.Kafka.Plain},
		{"--stream-tls", secured, securedIfFree, &s.kafka.tls, &s.cfg.Kafka.TLS},
	} {
		if port.address == config.Off {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", port.address)
		if err != nil {
			if port.ifFree {
				s.kafka.portsInUse = append(s.kafka.portsInUse,
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
		if tcp, ok := listener.(*net.TCPListener); ok && s.ensemble != nil {
			s.kafka.stopTurnAway = append(s.kafka.stopTurnAway, resetConnections(tcp))
		}
		*port.to, *port.real = s.sockets.apply(listener), withPort(port.address, listener.Addr())
	}
	if s.kafka.plain != nil {
		s.plan.KafkaPlain = s.cfg.Kafka.Plain
	}
	if s.kafka.tls != nil {
		_, s.plan.KafkaTLSPort, _ = net.SplitHostPort(s.cfg.Kafka.TLS)
	}
	return nil
}

// openKafka serves the Kafka protocol. Until then, connections to a single server waited to
// be accepted, and those to a member were reset.
func (s *server) openKafka(context.Context) error {
	if s.kafka.plain == nil && s.kafka.tls == nil {
		return nil
	}
	s.kafka.server = kafkaapi.NewServer(kafkaapi.Options{
		Options: s.surfaceOptions(), Policy: s.identity.policy,
		Clusters: kafkaClusters{s}, ListAll: s.cfg.Kafka.ListAll,
		Limits: kafkaapi.Limits{
			MaxFrame: int(s.cfg.Kafka.Request), Memory: int64(s.cfg.Kafka.Memory),
			Connections:  kafkaConnections(s.cfg, s.fileBudget),
			StallTimeout: s.cfg.Timeouts.WriteBody.Std(),
		},
		Logger: s.log,
	})
	for _, end := range s.kafka.stopTurnAway {
		end()
	}
	if s.kafka.plain != nil {
		s.serveKafka(kafkaapi.Listener{
			Name: "plain", Listener: s.kafka.plain, Advertised: s.cfg.Kafka.Advertised,
			Anonymous: s.anonymous(),
		})
	}
	if s.kafka.tls != nil {
		secured := s.tlsConfig.Clone()
		secured.NextProtos = nil
		s.serveKafka(kafkaapi.Listener{
			Name: "tls", Listener: s.kafka.tls, TLS: secured,
			Advertised: s.cfg.Kafka.AdvertisedTLS,
		})
	}
	return nil
}

// kafkaConnections returns the connection limit of a listener. One third of the connections
// that the limit of open files allows is reserved for HTTP.
func kafkaConnections(cfg *config.Config, f fileBudget) int {
	return max(1, min(cfg.Kafka.Connections, f.connections*2/3))
}

// anonymous returns a function that issues tokens of the account kafkaServer.anonymous, or nil if
// it is not set. A token is for one connection and never leaves the process.
func (s *server) anonymous() func(*kafkaapi.Cluster) (string, error) {
	organization, name, ok := strings.Cut(s.cfg.Kafka.Anonymous, "/")
	if !ok {
		return nil
	}
	return func(c *kafkaapi.Cluster) (string, error) {
		account, ok := s.identity.directory.Account(organization, name)
		switch {
		case !ok:
			return "", fmt.Errorf(
				"service account %s of stream.anonymous does not exist; create it, or remove the setting",
				s.cfg.Kafka.Anonymous)
		case account.Admin || account.System:
			return "", fmt.Errorf("service account %s of stream.anonymous is an administrator; use another account",
				s.cfg.Kafka.Anonymous)
		}
		token, _, err := s.identity.issuer.AccessToken(account, identity.MaxTokenLifetime, c.Audiences[0])
		return token.Reveal(), err
	}
}

// stopKafka finishes the running requests of the Kafka protocol and closes its server. The
// channel is closed when that is done.
func (s *server) stopKafka(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s.kafka.server == nil {
			return
		}
		if err := s.kafka.server.Shutdown(ctx); err != nil {
			s.log.Warn("requests of the Kafka protocol were aborted at the end of the drain time",
				slog.Any("error", err))
		}
	}()
	return done
}

func (s *server) serveKafka(l kafkaapi.Listener) {
	go func() {
		if err := s.kafka.server.Serve(l); err != nil && !errors.Is(err, kafkaapi.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving the Kafka protocol on %s: %w", l.Addr(), err)
		}
	}()
}

// kafkaClusters implements kafkaapi.Clusters.
type kafkaClusters struct{ s *server }

var errNoKafka = errs.New(errs.NotFound,
	"cluster does not support the Kafka protocol; add spec.config.protocols.stream to it")

// AtHost implements kafkaapi.Clusters.
func (c kafkaClusters) AtHost(name string) (*kafkaapi.Cluster, error) {
	found, err := findAtHost(c.s.plane, name)
	return c.serves(found, err)
}

// Default implements kafkaapi.Clusters.
func (c kafkaClusters) Default() (*kafkaapi.Cluster, error) { return c.AtHost("") }

// Named implements kafkaapi.Clusters.
func (c kafkaClusters) Named(organization, name string) (*kafkaapi.Cluster, error) {
	found, err := c.s.plane.FindNamed(organization, name)
	return c.serves(found, undisclosedError(organization, err))
}

func (c kafkaClusters) serves(found *dataplane.Cluster, err error) (*kafkaapi.Cluster, error) {
	if err != nil {
		return nil, err
	}
	if !found.Stream {
		return nil, undisclosedError(found.Organization, errNoKafka)
	}
	coordinator, err := c.s.groupsOf(found)
	if err != nil {
		return nil, undisclosedError(found.Organization, err)
	}
	return &kafkaapi.Cluster{
		Organization: found.Organization, Name: found.Name, UID: found.UID,
		Location: found.Location, Scope: found.Scope, Audiences: found.Audiences, Broker: found.Broker,
		Groups: coordinator, Quota: found.Quota,
		Members:     c.s.kafkaMembers(found),
		ServesKafka: func() bool { return c.s.plane.ServesKafka(found.UID) && c.s.alive() },
		Disk:        func() (total, free int64, err error) { return diskBytes(c.s.cfg.DataDir) },
	}, nil
}

// groupsOf returns the coordinator of a cluster's consumer groups.
func (s *server) groupsOf(c *dataplane.Cluster) (*groups.Coordinator, error) {
	name := slog.String("cluster", c.Organization+"/"+c.Name)
	coordinator, err := c.Groups(context.Background(), s.cfg.Kafka.InitialDelay.Std(), s.log.With(name))
	if err != nil {
		s.log.Error("consumer groups of a cluster could not be opened", name, slog.Any("error", err))
		return nil, errs.New(errs.Unavailable,
			"consumer groups of the cluster cannot be opened; see the server's log")
	}
	return coordinator, nil
}
