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
	"freshet/internal/ops/listen"
	"freshet/internal/surfaces/clusterpath"
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
		if tcp, ok := listener.(*net.TCPListener); ok {
			s.kafka.stopTurnAway = append(s.kafka.stopTurnAway, s.topology.refuseEarly(tcp))
		}
		*port.to, *port.real = s.ports.shared.Apply(listener), listen.WithPort(port.address, listener.Addr())
		if s.cfg.Proxies.SendProtocol(strings.TrimPrefix(port.flag, "--")) {
			*port.to = listen.AcceptProxied(*port.to, s.cfg.Proxies.Set(), s.cfg.Timeouts.ReadHeader.Std())
		}
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
			Connections:  s.ports.budget.Kafka(s.cfg.Kafka.Connections),
			StallTimeout: min(s.cfg.Timeouts.WriteBody.Std(), kafkaapi.MaxStallTimeout),
		},
		Disk: s.reserve, Logger: s.log,
	})
	for _, end := range s.kafka.stopTurnAway {
		end()
	}
	if s.kafka.plain != nil {
		s.serveKafka(kafkaapi.Listener{
			Name: "plain", Listener: s.kafka.plain, Advertised: s.cfg.Kafka.Advertised,
			Anonymous: kafkaapi.NewAnonymousAccount(s.cfg.Kafka.Anonymous, s.identity.directory, s.identity.issuer),
		})
	}
	if s.kafka.tls != nil {
		secured := s.ports.tls.Clone()
		secured.NextProtos = nil
		s.serveKafka(kafkaapi.Listener{
			Name: "tls", Listener: s.kafka.tls, TLS: secured,
			Advertised: s.cfg.Kafka.AdvertisedTLS,
		})
	}
	return nil
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
	found, err := clusterpath.FindAtHost(c.s.plane, name)
	return c.serves(found, err)
}

// Default implements kafkaapi.Clusters.
func (c kafkaClusters) Default() (*kafkaapi.Cluster, error) { return c.AtHost("") }

// Named implements kafkaapi.Clusters.
func (c kafkaClusters) Named(organization, name string) (*kafkaapi.Cluster, error) {
	found, err := clusterpath.FindNamed(c.s.plane, organization, name)
	return c.serves(found, err)
}

func (c kafkaClusters) serves(found *dataplane.Cluster, err error) (*kafkaapi.Cluster, error) {
	if err != nil {
		return nil, err
	}
	if !found.Stream {
		return nil, clusterpath.Undisclosed(found.Organization, errNoKafka)
	}
	coordinator, err := c.s.groupsOf(found)
	if err != nil {
		return nil, clusterpath.Undisclosed(found.Organization, err)
	}
	return &kafkaapi.Cluster{
		Organization: found.Organization, Name: found.Name, UID: found.UID,
		Location: found.Location, Scope: found.Scope, Audiences: found.Audiences,
		Topics: found.Broker.Kafka, Appends: found.Broker.Kafka,
		Namespaces: found.Broker.Catalogue, Grants: found.Broker.Grants,
		Groups: coordinator, Shares: found.Broker.Shares, Quota: found.Quota,
		Members: c.s.topology.nodes(found),
	}, nil
}

// Serves implements kafkaapi.Clusters.
func (c kafkaClusters) Serves(cluster *kafkaapi.Cluster) bool {
	return c.s.plane.ServesKafka(cluster.UID) && c.s.servers.Alive()
}

// clusterGroups are the consumer groups of a cluster. It implements brokerhttp.Groups.
type clusterGroups struct {
	s       *server
	cluster *dataplane.Cluster
}

// Coordinator implements brokerhttp.Groups.
func (g clusterGroups) Coordinator() (*groups.Coordinator, error) { return g.s.groupsOf(g.cluster) }

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
