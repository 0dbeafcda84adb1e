// Package proxies finds the address of a client behind trusted proxies. It owns the set of
// trusted addresses and the meaning of X-Forwarded-For. internal/base/web applies it to requests,
// internal/ops/listen to connections that begin with the PROXY protocol. It has no locks: a Set
// is not changed after Parse.
package proxies

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Set contains the addresses of trusted proxies. The zero value trusts none.
type Set struct{ prefixes []netip.Prefix }

// Parse parses IP addresses and networks in CIDR notation.
func Parse(list []string) (Set, error) {
	var s Set
	for _, text := range list {
		prefix, err := parsePrefix(text)
		if err != nil {
			return Set{}, err
		}
		s.prefixes = append(s.prefixes, prefix)
	}
	return s, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q must be an IP address, or a network such as 10.0.0.0/8", text)
	}
	if prefix.Bits() == 0 {
		return netip.Prefix{}, fmt.Errorf("%q contains every address, so every client could choose its address; "+
			"list the addresses of the proxies", text)
	}
	return prefix.Masked(), nil
}

// Empty reports whether the set trusts no address.
func (s Set) Empty() bool { return len(s.prefixes) == 0 }

// Contains reports whether an address is trusted.
func (s Set) Contains(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	for _, prefix := range s.prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// ContainsRemote reports whether the host of a remote address (host:port) is trusted.
func (s Set) ContainsRemote(remote string) bool {
	address, ok := parseAddress(remote)
	return ok && s.Contains(address.Addr())
}

// maxHops is how many addresses of X-Forwarded-For are examined.
const maxHops = 32

// Client returns the address of the client of a request in the form host:port. remote is the
// address of the connection, forwarded are the values of X-Forwarded-For. Each proxy appends the
// address of its own client, so Client reads the list from its end, as long as the address that
// appended an entry is trusted. What an address that is not trusted has sent does not count. The
// port is 0 if the proxy does not report it.
func (s Set) Client(remote string, forwarded []string) string {
	if len(s.prefixes) == 0 || len(forwarded) == 0 || !s.ContainsRemote(remote) {
		return remote
	}
	rest := strings.Join(forwarded, ",")
	for range maxHops {
		at := strings.LastIndexByte(rest, ',')
		address, ok := parseAddress(strings.TrimSpace(rest[at+1:]))
		if !ok {
			return remote // the proxy does not report an address, so the last known one counts
		}
		remote = address.String()
		if at < 0 || !s.Contains(address.Addr()) {
			return remote
		}
		rest = rest[:at]
	}
	return remote
}

// parseAddress parses an IP address with or without a port.
func parseAddress(text string) (netip.AddrPort, bool) {
	if address, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(address.Addr().Unmap(), address.Port()), true
	}
	host := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if address, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(address.Unmap(), 0), true
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		if address, err := netip.ParseAddr(host); err == nil {
			return netip.AddrPortFrom(address.Unmap(), 0), true
		}
	}
	return netip.AddrPort{}, false
}
