package clustercmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/config"
	"freshet/internal/ensemble/bundle"
)

func newJoin(env *command.Env) *cobra.Command {
	var dataDir, file string
	cmd := &cobra.Command{
		Use:   "join BUNDLE",
		Short: "Make this machine a member of a group",
		Long: `Make this machine a member of a group: unpack its bundle into an empty data
directory, and write the group into the server's configuration. A configuration that
is there keeps what it says, and gets baseURL, members and, when the group has NATS
servers of its own, nats added at its end.

Nothing is started. The command can be repeated with the same bundle.`,
		Example: `  # a machine of a new group
  freshet cluster join a.bundle --data-dir /var/lib/freshet --config /etc/freshet.yaml

  # here, to try it
  freshet cluster join freshet-group/b.bundle --data-dir b-data --config b.yaml

  # and then
  freshet serve --config b.yaml`,
		Args: command.One("the file of the member's bundle"),
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
			err = part.Install(bundle.Places{
				DataDir: cfg.DataDir, Bundle: cfg.BundleDir(),
				EncryptionKeys: cfg.EncryptionKeyFile(),
			})
			if err != nil {
				return err
			}
			if err := replaceFile(file, text); err != nil {
				return err
			}
			return printNext(env, part, cfg, file)
		},
	}
	f := cmd.Flags()
	f.StringVar(&dataDir, "data-dir", config.Default().DataDir, "the server's data `directory`, which must be empty")
	f.StringVar(&file, "config", "freshet.yaml",
		"the server's configuration `file` (YAML), which is made when it is not there")
	return cmd
}

// configuration is the text of the member's configuration, and what it means.
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
	want := settings(part.Self, part.Members)
	var add strings.Builder
	switch {
	case cfg.Members.On() && (cfg.Members.Self != want.Self || !slices.Equal(cfg.Members.List, want.List)):
		return nil, nil, errs.Newf(errs.Conflict,
			"%s has other members than the bundle; take members out of it, and join again", file)
	case cfg.BaseURL != "" && cfg.BaseURL != part.BaseURL:
		return nil, nil, errs.Newf(errs.Conflict,
			"%s has baseURL %s, and the group has %s; every member needs the same", file, cfg.BaseURL, part.BaseURL)
	case part.NATS != nil && cfg.NATS.External() && !slices.Equal(cfg.NATS.URLs, part.NATS.URLs):
		return nil, nil, errs.Newf(errs.Conflict, "%s has other nats.urls than the bundle; every member needs the same",
			file)
	}
	if len(old) == 0 {
		fmt.Fprintf(&add, "dataDir: %q\n", cfg.DataDir)
	} else if !strings.HasSuffix(string(old), "\n") {
		add.WriteString("\n")
	}
	if cfg.BaseURL == "" {
		fmt.Fprintf(&add, "baseURL: %q\n", part.BaseURL)
	}
	if !cfg.Members.On() {
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
		if now.EncryptionKey.File == "" { // the rest is checked before its files are there
			err = now.Validate()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s with the members added: %w", file, err)
	}
	return text, now, nil
}

// natsLines is how NATS servers of the operator's own stand in a configuration.
func natsLines(n *bundle.NATS) ([]byte, error) {
	lines, err := yaml.Marshal(map[string]*bundle.NATS{"nats": n})
	if err != nil {
		return nil, fmt.Errorf("writing nats into the configuration: %w", err)
	}
	return lines, nil
}

// replaceFile writes a file whole or not at all.
func replaceFile(path string, data []byte) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // gone already when all went well
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
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
	_, err := fmt.Fprintf(env.Out, `This machine is member %s of a group with %s. Its data directory is %s.

Next: see in %s that clients can reach it (https), then
  freshet serve --config %s

It is ready as soon as a majority of the members runs.
`, part.Self, strings.Join(others, " and "), cfg.DataDir, file, file)
	return err
}
