package config

import (
	"slices"
	"strings"

	"freshet/internal/base/proxies"
)

// Proxies configures the proxies and load balancers in front of the server. Limits, audit
// records and logs then contain the addresses of their clients.
type Proxies struct {
	// Trusted are the IP addresses and networks of the proxies. Only they may report the
	// address of a client.
	Trusted []string `json:"trusted,omitempty"`
	// Protocol lists the listeners to which the proxies send the PROXY protocol. On the HTTP
	// listeners that are not listed, the proxies report clients with X-Forwarded-For.
	Protocol []string `json:"protocol,omitempty"`
}

// proxyListeners are the listeners that support the PROXY protocol.
var proxyListeners = []string{"http", "https", "stream", "stream-tls"}

// maxProxies bounds the list, because every request from a proxy is compared with all of it.
const maxProxies = 256

func (c *Config) validateProxies(p *problems) {
	if len(c.Proxies.Trusted) > maxProxies {
		p.addf("proxies.trusted", "has %d entries, but at most %d are allowed; use networks such as 10.0.0.0/8",
			len(c.Proxies.Trusted), maxProxies)
	}
	for _, text := range c.Proxies.Trusted {
		if _, err := proxies.Parse([]string{text}); err != nil {
			p.addf("proxies.trusted", "%v", err)
		}
	}
	for _, listener := range c.Proxies.Protocol {
		if !slices.Contains(proxyListeners, listener) {
			p.addf("proxies.protocol", "%q must be one of %s", listener, strings.Join(proxyListeners, ", "))
		}
	}
	if len(c.Proxies.Protocol) > 0 && len(c.Proxies.Trusted) == 0 {
		p.addf("proxies.protocol", "needs the addresses of the proxies in proxies.trusted")
	}
}
