package servercmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
	"freshet/internal/config"
	"freshet/internal/identity"
)

// keys has the server, its configuration and its encryption keys for one command.
type keys struct {
	server Server
	cfg    *config.Config
	sealer *identity.Sealer
}

// keyActions are the actions on the keys that encrypt secrets at rest. takesID is set if the
// action needs the id of a key. The command prints the result of do.
var keyActions = map[string]struct {
	takesID bool
	done    string // what the action has done to the key, "" for a list
	do      func(ctx context.Context, k *keys, id string) (string, error)
}{
	"list": {false, "", listKeys},
	"rotate": {false, "activated", func(_ context.Context, k *keys, _ string) (string, error) {
		return k.sealer.Rotate()
	}},
	"add": {false, "added", func(_ context.Context, k *keys, _ string) (string, error) { return k.sealer.AddKey() }},
	"activate": {true, "activated", func(_ context.Context, k *keys, id string) (string, error) {
		return id,
			k.sealer.Activate(id)
	}},
	"retire": {true, "retired", retireKey},
}

// keyEntry is a key in a list.
type keyEntry struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// keyList returns the keys with their states. The last state is that of all other keys.
func keyList(ids []string, states ...string) []keyEntry {
	list := make([]keyEntry, len(ids))
	for i, id := range ids {
		list[i] = keyEntry{id, states[min(i, len(states)-1)]}
	}
	return list
}

// newEncryptionKey returns the command that edits the key file. The running server reloads a
// changed file automatically.
func newEncryptionKey(server Server) *cobra.Command {
	var dataDir, file, configFile string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "encryption-key list|rotate|add|activate ID|retire ID",
		Short: "Rotate the key that encrypts secrets at rest",
		Long: `Rotate the key that encrypts secrets at rest: credentials of service accounts,
the records of API keys, and the signing keys of tokens.

  list         show the keys, the active one first
  rotate       add a key and encrypt with it
  add          add a key that can decrypt, but does not encrypt yet
  activate ID  encrypt with this key
  retire ID    remove a key that is no longer used

The running server reloads the changed file within seconds, re-encrypts all stored
secrets with the active key, and logs when it has finished; then the old key can be
retired. The command does not retire a key that still encrypts a secret, whether the
server runs or not. It saves the old key file next to the new one.

With several replicas every replica must have a key before any of them encrypts with
it: add, copy the file to every replica, activate, copy again.`,
		Example: `  # one server: rotate the key
  freshet admin encryption-key rotate

  # retire the old key, when the server has re-encrypted every secret
  until freshet admin encryption-key retire $(freshet admin encryption-key list | tail -n 1); do sleep 1; done

  # a server with its own configuration file
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
			action := keyActions[args[0]]
			text, err := action.do(cmd.Context(), k, strings.Join(args[1:], ""))
			if err != nil {
				return err
			}
			if action.done == "" && format.IsData() {
				return output.Value(cmd.OutOrStdout(), format, keyList(k.sealer.KeyIDs(), "active", "retired"))
			}
			id, _, _ := strings.Cut(text, "\n")
			result := command.Result{Kind: "encryption-key", Name: id, Action: action.done}
			return result.Print(cmd.OutOrStdout(), format, "%s", text)
		},
	}
	f := cmd.Flags()
	output.AddFlag(f, &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	f.StringVar(&configFile, "config", "", "configuration `file` of the server (YAML)")
	f.StringVar(&dataDir, "data-dir", dataDirectory(), "data `directory` of the server")
	f.StringVar(&file, "file", "", "key `file` (default: encryption.key in the data directory)")
	return cmd
}

func keyArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.Usagef(cmd, "action is missing: list, rotate, add, activate or retire")
	}
	action, ok := keyActions[args[0]]
	switch {
	case !ok:
		return command.Usagef(cmd, "unknown action %q", args[0])
	case action.takesID && len(args) != 2:
		return command.Usagef(cmd, "%s requires the id of one key", args[0])
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

// retireKey removes a key unless a stored secret is encrypted with it.
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
		return "", errs.Newf(errs.Conflict, "%d secrets are still sealed with key %s and would be lost; "+
			"let the server run until its log reports that every secret is sealed with the active key %s, "+
			"then retire the old one", n, id, active)
	}
	before, err := k.sealer.Retire(id)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\nthe old key file is saved as %s; delete it when no backup needs the key", id, before), nil
}
