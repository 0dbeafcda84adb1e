package clustercmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/identity"
)

func newInit(env *command.Env) *cobra.Command {
	var dir, from string
	var g groupFlags
	cmd := &cobra.Command{
		Use:   "init NAME=HOST…",
		Short: "Make the certificates and secrets of a group",
		Long: `Make the certificates and secrets of a group of 3 or 5 servers: a bundle for each
member, and group.json, from which bundles are made again when a machine is lost.

HOST is the name or address at which the other members reach the machine; ports 7443
(calls between members), 7380 (etcd) and 7422 (log) are used, and take members'
certificates and nothing else. NAME=INTERNAL,ETCD,LOG gives three addresses
host:port instead.

With --nats-url the members keep the log of messages in NATS servers of your own, and
--external-etcd has them use an etcd of your own. Then nothing of it runs in the members,
and its address is left out: NAME=INTERNAL,ETCD for example.

Whoever has group.json can make members, and whoever has a bundle is one: bring
each bundle to its machine over a way that nobody else can read, then delete it here.
Keep group.json where you keep the keys of your backups.

With --from the group takes over a server: its encryption keys, the operator's token
and its certificate authority become the group's, and the first member begins with
its data, which 'freshet migrate' brings there.`,
		Example: `  # three machines, behind one address for clients
  freshet cluster init --base-url https://freshet.example.com a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # machines with names, which may get other addresses later
  freshet cluster init --base-url https://freshet.example.com --output /secure/group \
    a=a.internal.example.com b=b.internal.example.com c=c.internal.example.com

  # for the data of a server that has run alone; a gets it with 'freshet migrate'
  freshet cluster init --base-url https://freshet.example.com --from /var/lib/freshet \
    --output moved a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # with NATS servers of your own; the files are on the members' machines
  freshet cluster init --base-url https://freshet.example.com --output with-nats \
    --nats-url tls://nats-1.example.com:4222 --nats-url tls://nats-2.example.com:4222 \
    --nats-credentials /etc/freshet/nats.creds --nats-ca-file /etc/freshet/nats-ca.crt \
    --nats-monitoring http://nats-1.example.com:8222 --nats-monitoring http://nats-2.example.com:8222 \
    a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # three processes on one machine, to try it
  freshet cluster init --base-url http://127.0.0.1:8080 \
    a=127.0.0.1:17443,127.0.0.1:17380,127.0.0.1:17422 \
    b=127.0.0.1:27443,127.0.0.1:27380,127.0.0.1:27422 \
    c=127.0.0.1:37443,127.0.0.1:37380,127.0.0.1:37422`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef(cmd, "say who the members are: NAME=HOST of 3 or 5")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := g.check(cmd, from); err != nil {
				return err
			}
			members := make([]bundle.Member, len(args))
			for i, arg := range args {
				var err error
				if members[i], err = g.parseMember(arg); err != nil {
					return command.Usagef(cmd, "%w", err)
				}
			}
			if err := g.validate(members); err != nil {
				return err
			}
			group, err := newGroup(g.baseURL, members, from)
			if err != nil {
				return err
			}
			if g.ownNATS() {
				group.NATS = &g.nats
			}
			return writeGroup(env, dir, group)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "output", "freshet-group", "the `directory` to write to, which must not exist")
	f.StringVar(&from, "from", "", "data `directory` of a server whose data the first member begins with")
	g.add(f)
	return cmd
}

// settings is how the group stands in a member's configuration.
func settings(self string, members []bundle.Member) config.Members {
	m := config.Default().Members
	m.Self = self
	for _, one := range members {
		m.List = append(m.List, config.Member(one))
	}
	return m
}

// newGroup makes a group with new secrets, or with those of a server that moves into it.
func newGroup(baseURL string, members []bundle.Member, from string) (*bundle.Group, error) {
	if from == "" {
		return bundle.New(baseURL, members, identity.NewKeyFile())
	}
	group, err := bundle.New(baseURL, members, nil)
	if err != nil {
		return nil, err
	}
	if _, err := identity.ReadSealer(filepath.Join(from, "encryption.key")); err != nil {
		return nil, fmt.Errorf("taking over the secrets of the server in %s: %w", from, err)
	}
	if err := takeSecrets(group, from); err != nil {
		return nil, err
	}
	certificate, err := os.ReadFile(filepath.Join(from, "tls", "ca.crt"))
	if err == nil {
		key, keyErr := os.ReadFile(filepath.Join(from, "tls", "ca.key"))
		group.Secrets.ClientCA, err = bundle.Pair{Certificate: string(certificate), Key: string(key)}, keyErr
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) { // it may have certificates from elsewhere
		return nil, fmt.Errorf("taking over the certificate authority of the server in %s: %w", from, err)
	}
	group.Seed = members[0].Name
	return group, nil
}

func writeGroup(env *command.Env, dir string, group *bundle.Group) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return errs.Newf(errs.Conflict, "%s is there already; choose another directory with --output, or "+
				"'freshet cluster replace' for a machine that is lost", dir)
		}
		return err
	}
	members := group.Members
	if err := bundle.Write(filepath.Join(dir, bundle.GroupFile), group); err != nil {
		return err
	}
	for _, m := range members {
		part, err := group.Bundle(m.Name, false)
		if err != nil {
			return err
		}
		if err := bundle.Write(filepath.Join(dir, m.Name+".bundle"), part); err != nil {
			return err
		}
	}
	if group.Seed != "" {
		_, err := fmt.Fprintf(env.Out,
			`%s has a bundle for each of the %d members, and group.json, from which they are made.

Next, on the machine of %s, where the data of the server is or can be read, with the
server stopped:
  freshet cluster join %[3]s.bundle --data-dir /var/lib/freshet-group --config /etc/freshet.yaml
  freshet migrate --from /var/lib/freshet --config /etc/freshet.yaml

Then join the others with their bundles, start all of them with freshet serve, delete
the bundles, and keep group.json in a safe place.
`, dir, len(members), group.Seed)
		return err
	}
	_, err := fmt.Fprintf(env.Out,
		`%s has a bundle for each of the %d members, and group.json, from which they are made.

Next, on the machine of each member, with its own bundle:
  freshet cluster join %s.bundle --data-dir /var/lib/freshet --config /etc/freshet.yaml
  freshet serve --config /etc/freshet.yaml

Then delete the bundles, and keep group.json in a safe place.
`, dir, len(members), members[0].Name)
	return err
}
