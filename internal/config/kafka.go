package config

import (
	"net"
	"strconv"
	"strings"
	"time"
)

// Auto selects the default address of a listener. The server skips the listener if
// another process uses that address.
const Auto = "auto"

// Addresses that Auto selects.
const (
	autoKafkaPlain = "127.0.0.1:9092"
	autoKafkaTLS   = "127.0.0.1:9093"
)

// Kafka configures the Kafka protocol.
type Kafka struct {
	// Plain and TLS are listen addresses (host:port), "off", or "auto": the protocol's
	// port on the loopback address, unless another process uses it.
	Plain string `json:"plain"`
	TLS   string `json:"tls"`
	// InsecurePlain allows Plain on an address that other machines can reach. Clients
	// then send their tokens unencrypted.
	InsecurePlain bool `json:"insecurePlain"`
	// Advertised and AdvertisedTLS are the addresses (host[:port]) of the listeners that
	// the server returns to clients. Empty: the address to which each client connected.
	Advertised    string `json:"advertised"`
	AdvertisedTLS string `json:"advertisedTLS"`
	// Anonymous is the service account (organization/account) for clients on this
	// machine that connect to Plain without credentials. Empty: credentials are required.
	Anonymous string `json:"anonymous"`
	// ListAll adds the topics of other namespaces, as tenant.namespace.topic, when a
	// client lists all topics.
	ListAll bool `json:"listAll"`
	// InitialDelay is how long a new consumer group waits for more members before its
	// first rebalance.
	InitialDelay Duration `json:"initialDelay"`
	// Request bounds the size of one request, Memory the memory of requests and
	// responses in flight on all connections, Connections those of each listener.
	Request     Size `json:"request"`
	Memory      Size `json:"memory"`
	Connections int  `json:"connections"`
}

func defaultKafka() Kafka {
	return Kafka{
		Plain: Auto, TLS: Auto, InitialDelay: Duration(250 * time.Millisecond),
		Request: 100 << 20, Memory: 256 << 20, Connections: 10_000,
	}
}

// Addresses returns the listen addresses, or "off". plainIfFree and tlsIfFree report
// whether the server skips the listener if another process uses the address.
func (s *Kafka) Addresses() (plain string, plainIfFree bool, tls string, tlsIfFree bool) {
	plain, tls = s.Plain, s.TLS
	if plainIfFree = plain == Auto; plainIfFree {
		plain = autoKafkaPlain
	}
	if tlsIfFree = tls == Auto; tlsIfFree {
		tls = autoKafkaTLS
	}
	return plain, plainIfFree, tls, tlsIfFree
}

func (c *Config) validateKafka(p *problems) {
	s := &c.Kafka
	for _, l := range []struct{ field, address string }{{"stream.plain", s.Plain}, {"stream.tls", s.TLS}} {
		if l.address == Off || l.address == Auto {
			continue
		}
		_, port, err := net.SplitHostPort(l.address)
		if n, convErr := strconv.Atoi(port); err != nil || convErr != nil || n < 0 || n > 65535 {
			p.addf(l.field, "%q must be host:port, auto or off", l.address)
		}
	}
	if s.Plain != Off && s.Plain != Auto && !s.InsecurePlain && !isLoopback(s.Plain) {
		p.addf("stream.plain", "%s can be reached from other machines, and clients would send tokens unencrypted; "+
			"use stream.tls, or allow it with stream.insecurePlain: true", s.Plain)
	}
	if s.Anonymous != "" {
		organization, account, ok := strings.Cut(s.Anonymous, "/")
		switch {
		case !ok || organization == "" || account == "" || strings.Contains(account, "/"):
			p.addf("stream.anonymous", "%q must be organization/serviceaccount", s.Anonymous)
		case s.Plain != Auto && s.Plain != Off && !isLoopback(s.Plain):
			p.addf("stream.anonymous", "other machines could connect to stream.plain (%s) without credentials; "+
				"use a loopback address", s.Plain)
		}
	}
	if s.InitialDelay.Std() < 0 || s.InitialDelay.Std() > time.Minute {
		p.addf("stream.initialDelay", "%s is not between 0s and 1m0s", s.InitialDelay)
	}
	if s.Request < 1<<20 || s.Request > 1<<30 {
		p.addf("stream.request", "%s is not between 1Mi and 1Gi", s.Request)
	}
	if s.Memory < s.Request {
		p.addf("stream.memory", "%s is less than stream.request, %s", s.Memory, s.Request)
	}
	if s.Connections < 1 || s.Connections > 1_000_000 {
		p.addf("stream.connections", "%d is not between 1 and 1000000", s.Connections)
	}
}
