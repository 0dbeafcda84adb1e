package ensemble

import (
	"context"
	"fmt"
	"net"
)

// ListenAddress returns the listen address of a member for the address at which the other
// members reach it. It is the configured one (given), or the address itself if it is an IP
// address, or the local IP address to which its name resolves. If the name does not resolve
// to this machine, for example because of a proxy, it is 0.0.0.0; only members can connect.
func ListenAddress(ctx context.Context, given, address string) (string, error) {
	if given != "" {
		return given, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if net.ParseIP(host) != nil {
		return address, nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("reading the addresses of this machine: %w", err)
	}
	found, _ := net.DefaultResolver.LookupIPAddr(ctx, host) // the name may not resolve on this machine
	for _, ip := range found {
		for _, local := range own {
			if network, ok := local.(*net.IPNet); ok && network.IP.Equal(ip.IP) {
				return net.JoinHostPort(ip.IP.String(), port), nil
			}
		}
	}
	return net.JoinHostPort("0.0.0.0", port), nil
}
