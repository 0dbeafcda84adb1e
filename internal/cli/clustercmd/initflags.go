package clustercmd

import (
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/internal/cli/command"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
)

// The ports of members whose addresses are given as hosts.
const (
	portInternal = "7443"
	portEtcd     = "7380"
	portLog      = "7422"
)

// groupFlags say what a new group is like.
type groupFlags struct {
	baseURL string
	ownEtcd bool        // that of the operator, outside the members
	nats    bundle.NATS // the operator's, when it has URLs
}

func (g *groupFlags) add(f *pflag.FlagSet) {
	f.StringVar(&g.baseURL, "base-url", "", "the `URL` at which clients reach the group, the same for all members")
	f.BoolVar(&g.ownEtcd, "external-etcd", false,
		"the members use an etcd of your own, which their configurations name")
	f.StringSliceVar(&g.nats.URLs, "nats-url", nil,
		"`URL` of a NATS server of your own, nats://host:port or tls://host:port; may be repeated")
	f.StringSliceVar(&g.nats.Monitoring, "nats-monitoring", nil,
		"monitoring `URL` of such a server, where it is seen whether it syncs; may be repeated")
	f.StringVar(&g.nats.Credentials, "nats-credentials", "",
		"`file` on each member's machine with the credentials for NATS")
	f.StringVar(&g.nats.CAFile, "nats-ca-file", "",
		"`file` on each member's machine with the authority of the NATS servers' certificates")
	f.StringVar(&g.nats.CertFile, "nats-cert-file", "",
		"`file` on each member's machine with the certificate that is shown to NATS")
	f.StringVar(&g.nats.KeyFile, "nats-key-file", "",
		"`file` on each member's machine with the key of that certificate")
}

// ownNATS says whether NATS runs outside the members.
func (g *groupFlags) ownNATS() bool { return len(g.nats.URLs) > 0 }

// check refuses flags that do not go together.
func (g *groupFlags) check(cmd *cobra.Command, from string) error {
	if g.baseURL == "" {
		return command.Usagef(cmd, "--base-url is needed: the address at which clients reach the group")
	}
	if !g.ownNATS() {
		for _, flag := range []string{
			"nats-monitoring", "nats-credentials", "nats-ca-file", "nats-cert-file",
			"nats-key-file",
		} {
			if cmd.Flags().Changed(flag) {
				return command.Usagef(cmd, "--%s is for NATS servers of your own; name them with --nats-url", flag)
			}
		}
	}
	if (g.nats.CertFile == "") != (g.nats.KeyFile == "") {
		return command.Usagef(cmd, "--nats-cert-file and --nats-key-file go together")
	}
	if from != "" && g.ownEtcd {
		return command.Usagef(cmd,
			"--from and --external-etcd do not go together: 'freshet migrate' brings data into the etcd of the members")
	}
	return nil
}

// form is how a member is written with all its addresses.
func (g *groupFlags) form() string {
	form := "INTERNAL"
	if !g.ownEtcd {
		form += ",ETCD"
	}
	if !g.ownNATS() {
		form += ",LOG"
	}
	return form
}

// parseMember reads NAME=HOST, or NAME= and the addresses of what runs in members.
func (g *groupFlags) parseMember(arg string) (bundle.Member, error) {
	name, where, ok := strings.Cut(arg, "=")
	if !ok || name == "" || where == "" {
		return bundle.Member{}, fmt.Errorf("%q must be NAME=HOST, or NAME=%s with host:port each", arg, g.form())
	}
	m := bundle.Member{Name: name}
	fields := []*string{&m.Internal}
	ports := []string{portInternal}
	if !g.ownEtcd {
		fields, ports = append(fields, &m.Etcd), append(ports, portEtcd)
	}
	if !g.ownNATS() {
		fields, ports = append(fields, &m.Log), append(ports, portLog)
	}
	addresses := strings.Split(where, ",")
	_, _, err := net.SplitHostPort(where)
	switch whole := err == nil; {
	case len(addresses) == len(fields) && (len(fields) > 1 || whole):
		for i, address := range addresses {
			*fields[i] = address
		}
	case len(addresses) == 1:
		host := strings.Trim(where, "[]")
		for i, port := range ports {
			*fields[i] = net.JoinHostPort(host, port)
		}
	default:
		return bundle.Member{}, fmt.Errorf("%q has %d addresses; give NAME=HOST, or NAME=%s with host:port each", arg,
			len(addresses), g.form())
	}
	return m, nil
}

// validate refuses what no member could start with. Files are looked at when a member
// joins: they are on its machine.
func (g *groupFlags) validate(members []bundle.Member) error {
	cfg := config.Default()
	cfg.BaseURL = g.baseURL
	cfg.Members = settings(members[0].Name, members)
	cfg.NATS.URLs, cfg.NATS.Monitoring = g.nats.URLs, g.nats.Monitoring
	if g.ownEtcd {
		cfg.Etcd.Endpoints = []string{"https://etcd.invalid:2379"} // each member's configuration names the real ones
	}
	return cfg.Validate()
}
