package ensemblecmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/identity"
)

func newInit(env *command.Env) *cobra.Command {
	var dir, from string
	var g ensembleFlags
	var secret kubernetesSecret
	cmd := &cobra.Command{
		Use:   "init NAME=HOST…",
		Short: "Create the certificates and secrets of an ensemble",
		Long: `Create the certificates and secrets of an ensemble of 3 or 5 servers: a bundle for each
member, and group.json, from which 'freshet ensemble replace' creates new bundles.

HOST is the name or address at which the other members reach the machine. The members
use the ports 7443 (calls between members), 7380 (etcd) and 7422 (log), which accept
only members' certificates. NAME=INTERNAL,ETCD,LOG sets three addresses host:port
instead.

With --nats-url the members store the message log on your own NATS servers, and with
--external-etcd they use your own etcd. The members then run no NATS or etcd server,
and you leave out its address: NAME=INTERNAL,ETCD for example.

group.json is enough to create members, and a bundle is enough to act as its member.
Copy each bundle to its machine over a confidential channel, then delete it here. Store
group.json with the keys of your backups.

With --kubernetes-secret, for a job in Kubernetes, the command writes no files. It creates
a secret with the bundles and group.json in the job's namespace. An existing secret stays
as it is, so that the job can run again.

With --from the ensemble takes over a single server: its encryption keys, the operator's
token and its certificate authority become those of the ensemble, and the first member
starts with its data, which 'freshet migrate' copies.`,
		Example: `  # three machines, behind one address for clients
  freshet ensemble init --base-url https://freshet.example.com a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # machines with DNS names, so that their addresses can change later
  freshet ensemble init --base-url https://freshet.example.com --out /secure/group \
    a=a.internal.example.com b=b.internal.example.com c=c.internal.example.com

  # take over the data of a single server; 'freshet migrate' copies it to a
  freshet ensemble init --base-url https://freshet.example.com --from /var/lib/freshet \
    --out moved a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # with your own NATS servers; the files are on the members' machines
  freshet ensemble init --base-url https://freshet.example.com --out with-nats \
    --nats-url tls://nats-1.example.com:4222 --nats-url tls://nats-2.example.com:4222 \
    --nats-credentials /etc/freshet/nats.creds --nats-ca-file /etc/freshet/nats-ca.crt \
    --nats-monitoring http://nats-1.example.com:8222 --nats-monitoring http://nats-2.example.com:8222 \
    a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # for a script: the files of the bundles
  freshet ensemble init --base-url https://freshet.example.com --out scripted \
    -o jsonpath='{.members[*].file}' a=10.0.0.1 b=10.0.0.2 c=10.0.0.3

  # in a job in Kubernetes: bundles for three pods
  freshet ensemble init --base-url https://freshet.example.com --kubernetes-secret freshet-ensemble \
    freshet-0=freshet-0.freshet-members.prod.svc freshet-1=freshet-1.freshet-members.prod.svc \
    freshet-2=freshet-2.freshet-members.prod.svc

  # three processes on one machine, to try it
  freshet ensemble init --base-url http://127.0.0.1:8080 \
    a=127.0.0.1:17443,127.0.0.1:17380,127.0.0.1:17422 \
    b=127.0.0.1:27443,127.0.0.1:27380,127.0.0.1:27422 \
    c=127.0.0.1:37443,127.0.0.1:37380,127.0.0.1:37422`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef(cmd, "members are missing; name 3 or 5 as NAME=HOST")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(g.check(cmd, from), secret.check(cmd)); err != nil {
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
			ensemble, err := createEnsemble(g.baseURL, members, from)
			if err != nil {
				return err
			}
			if g.externalNATS() {
				ensemble.NATS = &g.nats
			}
			if secret.name != "" {
				return secret.create(cmd.Context(), env, ensemble)
			}
			return writeEnsemble(env, dir, ensemble)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "out", "freshet-group", "`directory` to write to; it must not exist")
	f.StringVar(&from, "from", "", "data `directory` of the single server that the ensemble takes over")
	g.add(f)
	secret.add(f)
	cmd.SetFlagErrorFunc(explainOutput)
	return cmd
}

// explainOutput names --out in the error of --output DIRECTORY, because --output was the directory before it was the
// format.
func explainOutput(cmd *cobra.Command, err error) error {
	usage := command.Usagef(cmd, "%w", err)
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Name == "output" {
		return hint.Add(usage, "--output is the format; name the directory with --out %s.", invalid.GetValue())
	}
	return usage
}

// membersConfig returns the members section of the configuration of member self.
func membersConfig(self string, members []bundle.Member) config.Members {
	m := config.Default().Members
	m.Self = self
	for _, one := range members {
		m.List = append(m.List, config.Member(one))
	}
	return m
}

// createEnsemble creates an ensemble with new secrets, or with those of the single server whose
// data directory is from.
func createEnsemble(baseURL string, members []bundle.Member, from string) (*bundle.Ensemble, error) {
	if from == "" {
		return bundle.New(baseURL, members, identity.NewKeyFile())
	}
	ensemble, err := bundle.New(baseURL, members, nil)
	if err != nil {
		return nil, err
	}
	if _, err := identity.ReadSealer(filepath.Join(from, "encryption.key")); err != nil {
		return nil, fmt.Errorf("taking over the secrets of the server in %s: %w", from, err)
	}
	if err := readSecrets(ensemble, from); err != nil {
		return nil, err
	}
	certificate, err := os.ReadFile(filepath.Join(from, "tls", "ca.crt"))
	if err == nil {
		key, keyErr := os.ReadFile(filepath.Join(from, "tls", "ca.key"))
		ensemble.Secrets.ClientCA, err = bundle.Pair{Certificate: string(certificate), Key: string(key)}, keyErr
	}
	// A server with its own certificates has no certificate authority.
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("taking over the certificate authority of the server in %s: %w", from, err)
	}
	ensemble.Seed = members[0].Name
	return ensemble, nil
}

func writeEnsemble(env *command.Env, dir string, ensemble *bundle.Ensemble) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return errs.Newf(errs.Conflict, "directory %s already exists; choose another with --out, or replace "+
				"a lost member with 'freshet ensemble replace'", dir)
		}
		return err
	}
	if err := bundle.Write(filepath.Join(dir, bundle.EnsembleFile), ensemble); err != nil {
		return err
	}
	result := createdEnsemble{Result: command.Result{
		Kind: "ensemble", Name: ensemble.ID, Action: "created", File: dir,
	}, Seed: ensemble.Seed}
	for _, m := range ensemble.Members {
		part, err := ensemble.Bundle(m.Name, false)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, m.Name+".bundle")
		if err := bundle.Write(file, part); err != nil {
			return err
		}
		result.Members = append(result.Members, memberBundle{Name: m.Name, File: file})
	}
	return result.print(env)
}

// createdEnsemble is the result of init in the form of -o json.
type createdEnsemble struct {
	command.Result
	// Seed is the member that starts with the data of a single server, if --from named one.
	Seed    string         `json:"seed,omitempty"`
	Members []memberBundle `json:"members"`
}

// memberBundle is a member and the file of its bundle.
type memberBundle struct {
	Name string `json:"name"`
	File string `json:"file"`
}

func (c *createdEnsemble) print(env *command.Env) error {
	if c.Seed != "" {
		return env.DoneInDetail(c.Result, c, `%s has a bundle for each of the %d members, and group.json.

Next, stop the server. Then, on the machine of %s, where the server's data can be read:
  freshet ensemble join %[3]s.bundle --data-dir /var/lib/freshet-group --config /etc/freshet.yaml
  freshet migrate --from /var/lib/freshet --config /etc/freshet.yaml

Then join the other members with their bundles, start all members with freshet serve,
delete the bundles, and store group.json in a safe place.`, c.File, len(c.Members), c.Seed)
	}
	return env.DoneInDetail(c.Result, c, `%s has a bundle for each of the %d members, and group.json.

Next, on each member's machine, with its own bundle:
  freshet ensemble join %s.bundle --data-dir /var/lib/freshet --config /etc/freshet.yaml
  freshet serve --config /etc/freshet.yaml

Then delete the bundles, and store group.json in a safe place.`, c.File, len(c.Members), c.Members[0].Name)
}
