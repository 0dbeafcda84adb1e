package servercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/base/retry"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
	"freshet/internal/config"
)

// signing has the flags and the connection of one signing-key command.
type signing struct {
	reset // the connection to the server

	file string // the file from which the server reads the keys to withdraw
}

func newSigningKey() *cobra.Command {
	var s signing
	var format output.Format
	cmd := &cobra.Command{
		Use:   "signing-key list|withdraw ID...|withdraw all",
		Short: "Withdraw a leaked key that signs tokens",
		Long: `Withdraw keys that sign access tokens and API keys, when they may have leaked.

  list          show the keys: the active one, the next one, then retired ones
  withdraw ID   withdraw keys; tokens that they signed become invalid immediately
  withdraw all  withdraw all keys, when the data directory itself may have leaked

Clients request new access tokens automatically, with the secrets that they have. API
keys that a withdrawn key signed must be created again. A running server withdraws the
keys within a second, a stopped one at its next start, before it accepts requests.`,
		Example: `  # list the keys; a token names its key as kid
  freshet admin signing-key list

  # the active key has leaked
  freshet admin signing-key withdraw -- $(freshet admin signing-key list | sed -n 's/ (active)//p')

  # the data directory has leaked
  freshet admin signing-key withdraw all`,
		Args: signingArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg := config.Default()
			cfg.DataDir = s.dataDir
			s.file = cfg.WithdrawnKeysFile()
			if err := s.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), s.timeout)
			defer cancel()
			if args[0] == "list" {
				ids, err := s.keys(ctx)
				if err != nil {
					return err
				}
				return printSigningKeys(cmd.OutOrStdout(), format, ids)
			}
			text, err := s.withdraw(ctx, args[1:])
			if err != nil {
				return err
			}
			return command.Result{Kind: "signing-key", Name: strings.Join(args[1:], " "), Action: "withdrawn"}.Print(
				cmd.OutOrStdout(), format, "%s", text)
		},
	}
	f := cmd.Flags()
	output.AddFlag(f, &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	f.StringVar(&s.dataDir, "data-dir", dataDirectory(), "data `directory` of the server")
	f.StringVar(&s.server, "server", "", "base `URL` of the server (default: from the data directory's kubeconfig)")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long to wait for the server")
	return cmd
}

func signingArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return command.Usagef(cmd, "action is missing: list or withdraw")
	case args[0] == "list" && len(args) > 1:
		return command.Usagef(cmd, "unexpected argument %q", args[1])
	case args[0] == "withdraw" && len(args) == 1:
		return command.Usagef(cmd, "withdraw requires ids of signing keys, or all")
	case args[0] != "list" && args[0] != "withdraw":
		return command.Usagef(cmd, "unknown action %q", args[0])
	}
	return nil
}

func printSigningKeys(w io.Writer, format output.Format, ids []string) error {
	list := keyList(ids, "active", "next", "retired")
	if format.IsData() {
		return output.Value(w, format, list)
	}
	for _, key := range list {
		if _, err := fmt.Fprintf(w, "%s (%s)\n", key.Name, key.State); err != nil {
			return err
		}
	}
	return nil
}

// keys returns the ids of the keys that a running server publishes, in its order.
func (s *signing) keys(ctx context.Context) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.base.JoinPath(".well-known", "jwks.json").String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "server cannot be reached: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxResponse)).Decode(&set); err != nil ||
		response.StatusCode != http.StatusOK {
		return nil, errs.Newf(errs.Unavailable, "server returned no signing keys: %s", response.Status)
	}
	var ids []string
	for _, key := range set.Keys {
		ids = append(ids, key.ID)
	}
	return ids, nil
}

// withdraw passes the keys to the server, and waits until the server has withdrawn them.
func (s *signing) withdraw(ctx context.Context, ids []string) (string, error) {
	known, err := s.keys(ctx)
	responds := err == nil
	for _, id := range ids {
		if responds && id != "all" && !slices.Contains(known, id) {
			return "", errs.Newf(errs.NotFound,
				"signing key %q does not exist on the server; list the keys with freshet admin signing-key list", id)
		}
	}
	if err := s.requestWithdrawal(ids); err != nil {
		return "", err
	}
	if !responds {
		return fmt.Sprintf("the server does not respond at %s: if it is running, it withdraws %s within a second, "+
			"otherwise at its next start, before it accepts requests",
			s.server, strings.Join(ids, ", ")), nil
	}
	for {
		if _, err := os.Stat(s.file); errors.Is(err, fs.ErrNotExist) {
			return "withdrawn: " + strings.Join(ids, ", ") +
				"\ntokens that they signed are invalid; API keys among them must be created again", nil
		}
		if retry.Sleep(ctx, resetPoll) != nil {
			return "", errs.Newf(errs.Unavailable,
				"server has not withdrawn the keys in %s; see its log: %w", s.file, ctx.Err())
		}
	}
}

// requestWithdrawal adds the ids to the file of keys to withdraw. The file is world-readable, because the
// server may run as another user than this command, and the ids are not secret.
func (s *signing) requestWithdrawal(ids []string) error {
	before, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := contexts.WritePrivate(s.file, append(before, strings.Join(ids, "\n")+"\n"...)); err != nil {
		return err
	}
	err = os.Chmod(s.file, 0o644) //nolint:gosec // ids of public keys
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
