package config

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// Members lists the servers of an ensemble. Without a list the server runs alone.
type Members struct {
	// Self is the name of this server in the list.
	Self string `json:"self"`
	// Bundle is the folder with this member's certificate. A relative path is relative
	// to the data directory. `freshet ensemble join` fills the folder.
	Bundle string `json:"bundle"`
	// Listen are the addresses on which this server listens for the other members, if
	// they differ from the addresses at which the members reach it.
	Listen MemberListen `json:"listen"`
	// List contains every member, in the same order on each of them.
	List []Member `json:"list,omitempty"`
}

// Member is one server of an ensemble, with the addresses at which the other members
// reach it. All three accept only certificates of members.
type Member struct {
	Name string `json:"name"`
	// Internal is for calls between members, Etcd for the resource store (empty if etcd
	// is external), and Log for the message log (empty if NATS is external).
	Internal string `json:"internal"`
	Etcd     string `json:"etcd"`
	Log      string `json:"log"`
}

// MemberListen contains addresses of this machine. Empty: the address in the list.
type MemberListen struct {
	Internal string `json:"internal"`
	Etcd     string `json:"etcd"`
	Log      string `json:"log"`
}

// Enabled reports whether the server is a member of an ensemble.
func (m *Members) Enabled() bool { return len(m.List) > 0 }

// Own returns this server's entry and its index in the list, or -1 if the list does not contain it.
func (m *Members) Own() (own Member, index int) {
	for i, member := range m.List {
		if member.Name == m.Self {
			return member, i
		}
	}
	return Member{}, -1
}

func (c *Config) validateMembers(p *problems) {
	m := &c.Members
	if !m.Enabled() {
		if m.Self != "" {
			p.addf("members.self", "%q is set, but members.list is empty; list all members, or leave both out",
				m.Self)
		}
		return
	}
	if m.Bundle == "" {
		p.addf("members.bundle", "must be the folder that freshet ensemble join creates")
	}
	// An even number of members tolerates no more failures than the odd number below it.
	if n := len(m.List); n != 3 && n != 5 {
		p.addf("members.list", "has %d members, but an ensemble has 3 or 5; leave the list out for a single server", n)
	}
	if _, index := m.Own(); index < 0 {
		p.addf("members.self", "%q is not the name of a member in members.list", m.Self)
	}
	if c.BaseURL == "" {
		p.addf("baseURL", "must be set when members.list is set, because all members issue and accept tokens for "+
			"the same URL")
	}
	if c.Etcd.SingleReplica {
		p.addf("etcd.singleReplica", "cannot be true when members.list is set")
	}
	for _, l := range []struct{ name, address string }{
		{"internal", m.Listen.Internal},
		{"etcd", m.Listen.Etcd},
		{"log", m.Listen.Log},
	} {
		if host, _, err := net.SplitHostPort(l.address); l.address != "" && (err != nil || net.ParseIP(host) == nil) {
			p.addf("members.listen."+l.name,
				"%q must be an IP address of this machine and a port, such as 0.0.0.0:7443", l.address)
		}
	}
	names, addresses := map[string]bool{}, c.ownAddresses()
	for i, member := range m.List {
		field := fmt.Sprintf("members.list[%d]", i)
		p.checkLabel(field+".name", member.Name)
		if names[member.Name] {
			p.addf(field+".name", "%s is listed twice", member.Name)
		}
		names[member.Name] = true
		c.validateMemberAddresses(p, field, member, addresses)
	}
}

func (c *Config) validateNATS(p *problems) {
	n := &c.NATS
	if n.External() && !c.Members.Enabled() {
		p.addf("nats.urls", "are only for the members of an ensemble; leave them out, or set members.list")
	}
	for i, address := range n.URLs {
		u, err := url.Parse(address)
		if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.Host == "" || u.User != nil {
			p.addf(fmt.Sprintf("nats.urls[%d]", i),
				"must be nats://host:port or tls://host:port; put credentials into the file nats.credentials")
		}
	}
	for i, address := range n.Monitoring {
		u, err := url.Parse(address)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
			p.addf(fmt.Sprintf("nats.monitoring[%d]", i), "must be http(s)://host:port")
		}
	}
	p.checkPair("nats", n.CertFile, n.KeyFile)
	p.checkReadable("nats.caFile", n.CAFile)
	p.checkReadable("nats.credentials", n.Credentials)
}

// ownAddresses maps the listen addresses for clients to their settings.
func (c *Config) ownAddresses() map[string]string {
	out := map[string]string{}
	for _, l := range []struct{ field, address string }{
		{"http", c.HTTP},
		{"https", c.HTTPS},
		{"ops", c.Ops},
		{"stream.plain", c.Kafka.Plain},
		{"stream.tls", c.Kafka.TLS},
	} {
		out[l.address] = l.field
	}
	return out
}

func (c *Config) validateMemberAddresses(p *problems, field string, member Member, seen map[string]string) {
	for _, a := range []struct{ name, address string }{
		{"internal", member.Internal}, {"etcd", member.Etcd}, {"log", member.Log},
	} {
		at := field + "." + a.name
		if a.name == "etcd" && c.Etcd.External() {
			if a.address != "" {
				p.addf(at, "must be left out when etcd.endpoints are set, because the members then run no etcd")
			}
			continue
		}
		if a.name == "log" && c.NATS.External() {
			if a.address != "" {
				p.addf(at, "must be left out when nats.urls are set, because the members then run no NATS server")
			}
			continue
		}
		host, port, err := net.SplitHostPort(a.address)
		n, portErr := strconv.Atoi(port)
		ip := net.ParseIP(host)
		switch {
		case err != nil || portErr != nil || n < 1 || n > 65535 || host == "" || ip != nil && ip.IsUnspecified():
			p.addf(at, "%q must be the host:port at which the other members reach this member", a.address)
			continue
		case ip == nil:
			p.checkSubdomain(at, host)
		}
		if other, taken := seen[a.address]; taken {
			p.addf(at, "%s is already the address of %s", a.address, other)
		}
		seen[a.address] = at
	}
}
