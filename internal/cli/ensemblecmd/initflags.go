package ensemblecmd

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

// The ports of members that are given as NAME=HOST.
const (
	portInternal = "7443"
	portEtcd     = "7380"
	portLog      = "7422"
)

// ensembleFlags are the flags of init that describe the new ensemble.
type ensembleFlags struct {
	baseURL      string
	externalEtcd bool        // the members use the operator's etcd
	nats         bundle.NATS // the operator's NATS servers; no URLs: NATS runs in the members
}

func (g *ensembleFlags) add(f *pflag.FlagSet) {
	f.StringVar(&g.baseURL, "base-url", "", "`URL` at which clients reach the ensemble, the same for all members")
	f.BoolVar(&g.externalEtcd, "external-etcd", false, "use your own etcd, which each member's configuration names")
	f.StringSliceVar(&g.nats.URLs, "nats-url", nil,
		"`URL` of your own NATS server, nats://host:port or tls://host:port; may be repeated")
	f.StringSliceVar(&g.nats.Monitoring, "nats-monitoring", nil,
		"monitoring `URL` of such a server, to check that it syncs to disk; may be repeated")
	f.StringVar(&g.nats.Credentials, "nats-credentials", "",
		"`file` on each member's machine with the credentials for NATS")
	f.StringVar(&g.nats.CAFile, "nats-ca-file", "",
		"`file` on each member's machine with the certificate authority of the NATS servers")
	f.StringVar(&g.nats.CertFile, "nats-cert-file", "",
		"`file` on each member's machine with its client certificate for NATS")
	f.StringVar(&g.nats.KeyFile, "nats-key-file", "",
		"`file` on each member's machine with the key of that certificate")
}

// externalNATS reports whether the ensemble uses the operator's NATS servers.
func (g *ensembleFlags) externalNATS() bool { return len(g.nats.URLs) > 0 }

// check rejects invalid combinations of flags.
func (g *ensembleFlags) check(cmd *cobra.Command, from string) error {
	if g.baseURL == "" {
		return command.Usagef(cmd, "--base-url is missing; set the address at which clients reach the ensemble")
	}
	if !g.externalNATS() {
		for _, flag := range []string{
			"nats-monitoring", "nats-credentials", "nats-ca-file", "nats-cert-file",
			"nats-key-file",
		} {
			if cmd.Flags().Changed(flag) {
				return command.Usagef(cmd, "--%s is for your own NATS servers; name them with --nats-url", flag)
			}
		}
	}
	if (g.nats.CertFile == "") != (g.nats.KeyFile == "") {
		return command.Usagef(cmd, "--nats-cert-file and --nats-key-file must be used together")
	}
	if from != "" && g.externalEtcd {
		return command.Usagef(cmd,
			"--from and --external-etcd cannot be combined: 'freshet migrate' copies data only into the members' etcd")
	}
	return nil
}

// addressSyntax returns the syntax of a member's addresses, for error messages.
func (g *ensembleFlags) addressSyntax() string {
	form := "INTERNAL"
	if !g.externalEtcd {
		form += ",ETCD"
	}
	if !g.externalNATS() {
		form += ",LOG"
	}
	return form
}

// parseMember parses NAME=HOST, or NAME= and one address for each service that runs in the
// members.
func (g *ensembleFlags) parseMember(arg string) (bundle.Member, error) {
	name, where, ok := strings.Cut(arg, "=")
	if !ok || name == "" || where == "" {
		return bundle.Member{}, fmt.Errorf("member %q must be NAME=HOST, or NAME=%s with host:port each", arg,
			g.addressSyntax())
	}
	m := bundle.Member{Name: name}
	fields := []*string{&m.Internal}
	ports := []string{portInternal}
	if !g.externalEtcd {
		fields, ports = append(fields, &m.Etcd), append(ports, portEtcd)
	}
	if !g.externalNATS() {
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
		return bundle.Member{}, fmt.Errorf("member %q has %d addresses; write NAME=HOST, or NAME=%s with host:port "+
			"each", arg, len(addresses), g.addressSyntax())
	}
	return m, nil
}

// validate rejects settings with which no member could start. It does not check files:
// they are on the members' machines, and join checks them there.
func (g *ensembleFlags) validate(members []bundle.Member) error {
	cfg := config.Default()
	cfg.BaseURL = g.baseURL
	cfg.Members = membersConfig(members[0].Name, members)
	cfg.NATS.URLs, cfg.NATS.Monitoring = g.nats.URLs, g.nats.Monitoring
	if g.externalEtcd {
		cfg.Etcd.Endpoints = []string{"https://etcd.invalid:2379"} // each member's configuration names the real ones
	}
	return cfg.Validate()
}
