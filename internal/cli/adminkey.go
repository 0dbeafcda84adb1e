package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/config"
	"freshet/internal/identity"
)

// keyActions are what can be done to the keys that encrypt secrets at rest, and
// whether it takes the id of one. They print what they return.
var keyActions = map[string]struct {
	takesID bool
	do      func(*identity.Sealer, string) (string, error)
}{
	"list":     {false, listKeys},
	"rotate":   {false, func(s *identity.Sealer, _ string) (string, error) { return s.Rotate() }},
	"add":      {false, func(s *identity.Sealer, _ string) (string, error) { return s.AddKey() }},
	"activate": {true, func(s *identity.Sealer, id string) (string, error) { return id, s.Activate(id) }},
	"retire":   {true, func(s *identity.Sealer, id string) (string, error) { return id, s.Retire(id) }},
}

// newEncryptionKey edits the file of keys; the server takes up a changed file
// by itself.
func newEncryptionKey() *cobra.Command {
	var dataDir, file string
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
be retired. With several replicas every one must know a key before any of them
seals with it: add, copy the file to every replica, activate, copy again.`,
		Example: `  # one server: a new key, at once
  freshet admin encryption-key rotate

  # when the log says that every secret is sealed with the active key
  freshet admin encryption-key list
  freshet admin encryption-key retire 5f0c2a9be1d3a744`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef(cmd, "say what to do: list, rotate, add, activate or retire")
			}
			action, ok := keyActions[args[0]]
			switch {
			case !ok:
				return usagef(cmd, "unknown action %q", args[0])
			case action.takesID && len(args) != 2:
				return usagef(cmd, "%s takes the id of a key", args[0])
			case !action.takesID && len(args) != 1:
				return usagef(cmd, "unexpected argument %q", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				file = filepath.Join(dataDir, "encryption.key")
			}
			sealer, err := identity.ReadSealer(file)
			if err != nil {
				return err
			}
			text, err := keyActions[args[0]].do(sealer, strings.Join(args[1:], ""))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dataDir, "data-dir", config.Default().DataDir, "the server's data `directory`")
	f.StringVar(&file, "file", "", "the key `file`, when it is not encryption.key in the data directory")
	return cmd
}

func listKeys(s *identity.Sealer, _ string) (string, error) {
	ids := s.KeyIDs()
	ids[0] += " (active)"
	return strings.Join(ids, "\n"), nil
}
