package signinapi

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"freshet/internal/identity"
)

// Origins returns the origins at which browsers may use this server: its addresses, the common
// names of the loopback address, and the names of its certificate at the address of HTTPS. It
// does not trust the Host header of requests, because any DNS name can resolve to this server.
func Origins(addresses, names []string, https string) []string {
	var list []string
	add := func(origin string) {
		if origin = identity.CanonicalURL(origin); !slices.Contains(list, origin) {
			list = append(list, origin)
		}
	}
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		add(u.Scheme + "://" + u.Host)
		host, port, err := net.SplitHostPort(u.Host)
		if ip := net.ParseIP(host); err == nil &&
			(host == "localhost" || host == "" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())) {
			for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
				add(u.Scheme + "://" + name + ":" + port)
			}
		}
	}
	for _, name := range names {
		if _, port, err := net.SplitHostPort(https); err == nil && !strings.Contains(name, "*") {
			add("https://" + net.JoinHostPort(name, port))
		}
	}
	return slices.DeleteFunc(list,
		func(origin string) bool { return !identity.IsBaseURL(origin) || strings.Contains(origin, "://0.0.0.0") })
}
