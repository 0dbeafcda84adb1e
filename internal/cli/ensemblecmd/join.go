package ensemblecmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"freshet/internal/base/atomicfile"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
)

func newJoin(env *command.Env) *cobra.Command {
	var dataDir, file string
	cmd := &cobra.Command{
		Use:   "join BUNDLE",
		Short: "Make this machine a member of an ensemble",
		Long: `Make this machine a member of an ensemble: unpack its bundle into an empty data
directory, and add the members to the server's configuration. An existing configuration
file keeps its settings; the command appends baseURL, members and, if the ensemble uses
your own NATS servers, nats.

The command does not start the server. It can be repeated with the same bundle. In the
data directory of the same member, it writes the member's certificate again, if that is
damaged or the bundle has a new one; stop the member first.`,
		Example: `  # on the machine of member a
  freshet ensemble join a.bundle --data-dir /var/lib/freshet --config /etc/freshet.yaml

  # in this directory, to try it
  freshet ensemble join freshet-group/b.bundle --data-dir b-data --config b.yaml

  # then start the member
  freshet serve --config b.yaml`,
		Args: command.OneArg("the bundle file of the member"),
		RunE: func(cmd *cobra.Command, args []string) error {
			part, err := bundle.Read(args[0])
			if err != nil {
				return err
			}
			text, cfg, err := configuration(file, part, func(c *config.Config) {
				if cmd.Flags().Changed("data-dir") {
					c.DataDir = dataDir
				}
			})
			if err != nil {
				return err
			}
			err = part.Install(bundle.Paths{
				DataDir: cfg.DataDir, CertDir: cfg.BundleDir(),
				EncryptionKeys: cfg.EncryptionKeyFile(),
			})
			if err != nil {
				return err
			}
			if err := replaceFile(file, text); err != nil {
				return err
			}
			if !env.ResultIsText() {
				return env.Done(command.Result{Kind: "member", Name: part.Self, Action: "joined", File: file}, "")
			}
			return printNext(env, part, cfg, file)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dataDir, "data-dir", config.Default().DataDir,
		"data `directory` of the server; it must be empty, or that of the same member")
	f.StringVar(&file, "config", "freshet.yaml",
		"configuration `file` of the server (YAML), created if it does not exist")
	return cmd
}

// configuration returns the new text of the configuration file, and the parsed form.
// flags applies the command's flags to a configuration.
func configuration(file string, part *bundle.Bundle, flags func(*config.Config)) ([]byte, *config.Config, error) {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	cfg, err := config.Parse(old)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	flags(cfg)
	want := membersConfig(part.Self, part.Members)
	var add strings.Builder
	switch {
	case cfg.Members.Enabled() && (cfg.Members.Self != want.Self || !slices.Equal(cfg.Members.List, want.List)):
		return nil, nil, errs.Newf(errs.Conflict,
			"%s has other members than the bundle; remove members from it, and join again", file)
	case cfg.BaseURL != "" && cfg.BaseURL != part.BaseURL:
		return nil, nil, errs.Newf(errs.Conflict,
			"%s has baseURL %s, but the ensemble has %s; set the same on every member", file, cfg.BaseURL, part.BaseURL)
	case part.NATS != nil && cfg.NATS.External() && !slices.Equal(cfg.NATS.URLs, part.NATS.URLs):
		return nil, nil, errs.Newf(errs.Conflict,
			"%s has other nats.urls than the bundle; set the same on every member", file)
	}
	if len(old) == 0 {
		fmt.Fprintf(&add, "dataDir: %q\n", cfg.DataDir)
	} else if !strings.HasSuffix(string(old), "\n") {
		add.WriteString("\n")
	}
	if cfg.BaseURL == "" {
		fmt.Fprintf(&add, "baseURL: %q\n", part.BaseURL)
	}
	if !cfg.Members.Enabled() {
		fmt.Fprintf(&add, "members:\n  self: %s\n  list:\n", want.Self)
		for _, m := range want.List {
			fmt.Fprintf(&add, "    - {name: %s, internal: %q, etcd: %q, log: %q}\n", m.Name, m.Internal, m.Etcd, m.Log)
		}
	}
	if part.NATS != nil && !cfg.NATS.External() {
		lines, err := natsLines(part.NATS)
		if err != nil {
			return nil, nil, err
		}
		add.Write(lines)
	}
	text := append(slices.Clone(old), add.String()...)
	now, err := config.Parse(text)
	if err == nil {
		flags(now)
		// Validate would read an encryption key file that join has not written yet.
		if now.EncryptionKey.File == "" {
			err = now.Validate()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("adding the members to %s: %w", file, err)
	}
	return text, now, nil
}

// natsLines returns the nats section of a configuration that uses the operator's servers.
func natsLines(n *bundle.NATS) ([]byte, error) {
	lines, err := yaml.Marshal(map[string]*bundle.NATS{"nats": n})
	if err != nil {
		return nil, fmt.Errorf("writing nats into the configuration: %w", err)
	}
	return lines, nil
}

// replaceFile replaces a file atomically. A new file gets mode 0600, an existing one keeps
// its mode.
func replaceFile(path string, data []byte) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := atomicfile.Replace(path, data, func(f *os.File) error { return f.Chmod(mode) }); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func printNext(env *command.Env, part *bundle.Bundle, cfg *config.Config, file string) error {
	others := make([]string, 0, len(part.Members))
	for _, m := range part.Members {
		if m.Name != part.Self {
			others = append(others, m.Name)
		}
	}
	return env.Printf(`This machine is member %s of an ensemble with %s. Its data directory is %s.

Next: check in %s that clients can reach it (https), then
  freshet serve --config %s

It becomes ready when a majority of the members runs.
`, part.Self, strings.Join(others, " and "), cfg.DataDir, file, file)
}
