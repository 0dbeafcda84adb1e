package config

import (
	"net"
	"strconv"
	"strings"
	"time"
)

// Auto is an address that is used when nobody else has it.
const Auto = "auto"

// The addresses that auto stands for.
const (
	autoStreamPlain = "127.0.0.1:9092"
	autoStreamTLS   = "127.0.0.1:9093"
)

// Stream says where clients of the stream protocol are served.
type Stream struct {
	// Plain and TLS are listen addresses (host:port), "off", or "auto": that of
	// the protocol on this machine, unless it is taken.
	Plain string `json:"plain"`
	TLS   string `json:"tls"`
	// InsecurePlain allows Plain on an address others can reach. Tokens then
	// cross the network in the clear.
	InsecurePlain bool `json:"insecurePlain"`
	// Advertised and AdvertisedTLS are host[:port] as clients see the listeners.
	// Empty: what each client used itself.
	Advertised    string `json:"advertised"`
	AdvertisedTLS string `json:"advertisedTLS"`
	// Anonymous is organization/account: what clients of this machine are that come
	// to Plain without credentials. Empty: nobody comes in without.
	Anonymous string `json:"anonymous"`
	// ListAll shows topics of other namespaces, as tenant.namespace.topic, to
	// clients that ask for all topics.
	ListAll bool `json:"listAll"`
	// InitialDelay is how long the first member of a consumer group waits for
	// company.
	InitialDelay Duration `json:"initialDelay"`
	// Request bounds one request, Memory requests and answers under way on all
	// connections, Connections those of each listener.
	Request     Size `json:"request"`
	Memory      Size `json:"memory"`
	Connections int  `json:"connections"`
}

func defaultStream() Stream {
	return Stream{
		Plain: Auto, TLS: Auto, InitialDelay: Duration(250 * time.Millisecond),
		Request: 100 << 20, Memory: 256 << 20, Connections: 10_000,
	}
}

// Addresses returns what to listen on, and whether it may be left out when it is
// taken; "off" for not at all.
func (s *Stream) Addresses() (plain string, plainIfFree bool, tls string, tlsIfFree bool) {
	plain, tls = s.Plain, s.TLS
	if plainIfFree = plain == Auto; plainIfFree {
		plain = autoStreamPlain
	}
	if tlsIfFree = tls == Auto; tlsIfFree {
		tls = autoStreamTLS
	}
	return plain, plainIfFree, tls, tlsIfFree
}

func (c *Config) validateStream(p *problems) {
	s := &c.Stream
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
		p.addf("stream.plain", "%s can be reached from other machines, and it would show them tokens; "+
			"use stream.tls, or allow it with stream.insecurePlain: true", s.Plain)
	}
	if s.Anonymous != "" {
		organization, account, ok := strings.Cut(s.Anonymous, "/")
		switch {
		case !ok || organization == "" || account == "" || strings.Contains(account, "/"):
			p.addf("stream.anonymous", "%q must be organization/serviceaccount", s.Anonymous)
		case s.Plain != Auto && s.Plain != Off && !isLoopback(s.Plain):
			p.addf("stream.anonymous", "other machines can reach stream.plain, %s, and would need no credentials; "+
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
