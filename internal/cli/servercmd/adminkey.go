package servercmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/config"
	"freshet/internal/identity"
)

// keys is what a command about the encryption keys works with.
type keys struct {
	server Server
	cfg    *config.Config
	sealer *identity.Sealer
}

// keyActions are what can be done to the keys that encrypt secrets at rest, and
// whether it takes the id of one. They print what they return.
var keyActions = map[string]struct {
	takesID bool
	do      func(ctx context.Context, k *keys, id string) (string, error)
}{
	"list":   {false, listKeys},
	"rotate": {false, func(_ context.Context, k *keys, _ string) (string, error) { return k.sealer.Rotate() }},
	"add":    {false, func(_ context.Context, k *keys, _ string) (string, error) { return k.sealer.AddKey() }},
	"activate": {true, func(_ context.Context, k *keys, id string) (string, error) {
		return id,
			k.sealer.Activate(id)
	}},
	"retire": {true, retireKey},
}

// newEncryptionKey edits the file of keys; the server takes up a changed file
// by itself.
func newEncryptionKey(server Server) *cobra.Command {
	var dataDir, file, configFile string
	cmd := &cobra.Command{
		Use:   "encryption-key list|rotate|add|activate ID|retire ID",
		Short: "Rotate the key that encrypts secrets at rest",
		Long: `Rotate the key that encrypts secrets at rest: credentials of service accounts,
the records of API keys, and the signing keys of tokens.

  list         show the keys, the active one first
  rotate       add a key and seal with it from now on
  add          add a key that is known but does not seal yet
  activate ID  seal with a key from now on
  retire ID    forget a key that seals nothing any more

The running server takes up the changed file within seconds, seals everything
that is stored with the active key, and says so in its log; then the old key can
be retired. A key that still seals something is not retired, whether the server
runs or not, and the key file as it was is kept beside the new one.

With several replicas every one must know a key before any of them seals with
it: add, copy the file to every replica, activate, copy again.`,
		Example: `  # one server: a new key, at once
  freshet admin encryption-key rotate

  # the old one, once the server has sealed every secret with the new one
  until freshet admin encryption-key retire $(freshet admin encryption-key list | tail -n 1); do sleep 1; done

  # a server with a configuration of its own
  freshet admin encryption-key list --config freshet.yaml`,
		Args: keyArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadConfig(configFile)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("data-dir") {
				cfg.DataDir = dataDir
			}
			if file != "" {
				cfg.EncryptionKey.File = file
			}
			k := &keys{server: server, cfg: cfg}
			if k.sealer, err = identity.ReadSealer(cfg.EncryptionKeyFile()); err != nil {
				return err
			}
			text, err := keyActions[args[0]].do(cmd.Context(), k, strings.Join(args[1:], ""))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&configFile, "config", "", "the server's configuration `file` (YAML)")
	f.StringVar(&dataDir, "data-dir", dataDirectory(), "the server's data `directory`")
	f.StringVar(&file, "file", "", "the key `file`, when it is not encryption.key in the data directory")
	return cmd
}

func keyArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.Usagef(cmd, "say what to do: list, rotate, add, activate or retire")
	}
	action, ok := keyActions[args[0]]
	switch {
	case !ok:
		return command.Usagef(cmd, "unknown action %q", args[0])
	case action.takesID && len(args) != 2:
		return command.Usagef(cmd, "%s takes the id of a key", args[0])
	case !action.takesID && len(args) != 1:
		return command.Usagef(cmd, "unexpected argument %q", args[1])
	}
	return nil
}

func listKeys(_ context.Context, k *keys, _ string) (string, error) {
	ids := k.sealer.KeyIDs()
	ids[0] += " (active)"
	return strings.Join(ids, "\n"), nil
}

// retireKey forgets a key unless something is sealed with it.
func retireKey(ctx context.Context, k *keys, id string) (string, error) {
	if err := k.sealer.Retirable(id); err != nil {
		return "", err
	}
	active := k.sealer.KeyIDs()[0]
	sealed, err := k.server.SealedSecrets(ctx, k.cfg, active)
	if err != nil {
		return "", err
	}
	if n := sealed[id]; n > 0 {
		return "", errs.Newf(errs.Conflict, "%d secrets are still sealed with key %s and would be lost: "+
			"let the server run until its log says that every secret is sealed with the active key %s, then retire the old one", n, id, active)
	}
	before, err := k.sealer.Retire(id)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\nthe key file as it was is kept in %s; delete it when no backup needs the key", id, before),
		nil
}
