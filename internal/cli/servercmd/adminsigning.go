package servercmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/config"
)

// signing is one run of signing-key.
type signing struct {
	reset // how the server is found

	file string // where it looks for keys to withdraw
}

func newSigningKey() *cobra.Command {
	var s signing
	cmd := &cobra.Command{
		Use:   "signing-key list|withdraw ID...|withdraw all",
		Short: "Withdraw a leaked key that signs tokens",
		Long: `Withdraw keys that sign access tokens and API keys, when they may have leaked.

  list          show the keys: the active one, the next one, then retired ones
  withdraw ID   end keys; every token that they have signed is refused at once
  withdraw all  end all of them, when the data directory itself may have leaked

Clients get new access tokens by themselves, with the secrets that they have.
API keys that a withdrawn key has signed have to be made again. A running server
obeys within a second; one that is stopped, before it answers anybody.`,
		Example: `  # which keys there are; a token names its own as kid
  freshet admin signing-key list

  # the active one has leaked
  freshet admin signing-key withdraw $(freshet admin signing-key list | sed -n 's/ (active)//p')

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
			do := s.list
			if args[0] == "withdraw" {
				do = func(ctx context.Context) (string, error) { return s.withdraw(ctx, args[1:]) }
			}
			text, err := do(ctx)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.dataDir, "data-dir", dataDirectory(), "the server's data `directory`")
	f.StringVar(&s.server, "server", "", "base `URL` of the server (default: as in the data directory's kubeconfig)")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "how long to wait for the server")
	return cmd
}

func signingArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return command.Usagef(cmd, "say what to do: list or withdraw")
	case args[0] == "list" && len(args) > 1:
		return command.Usagef(cmd, "unexpected argument %q", args[1])
	case args[0] == "withdraw" && len(args) == 1:
		return command.Usagef(cmd, "withdraw takes ids of signing keys, or all")
	case args[0] != "list" && args[0] != "withdraw":
		return command.Usagef(cmd, "unknown action %q", args[0])
	}
	return nil
}

func (s *signing) list(ctx context.Context) (string, error) {
	ids, err := s.keys(ctx)
	if err != nil {
		return "", err
	}
	for i := range ids {
		ids[i] += []string{" (active)", " (next)", " (retired)"}[min(i, 2)]
	}
	return strings.Join(ids, "\n"), nil
}

// keys are the ids of the keys that a running server publishes, in its order.
func (s *signing) keys(ctx context.Context) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.base.JoinPath(".well-known", "jwks.json").String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, errs.Newf(errs.Unavailable, "the server cannot be reached: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // read as far as wanted
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxAnswer)).Decode(&set); err != nil ||
		response.StatusCode != http.StatusOK {
		return nil, errs.Newf(errs.Unavailable, "the server does not tell its keys: %s", response.Status)
	}
	var ids []string
	for _, key := range set.Keys {
		ids = append(ids, key.ID)
	}
	return ids, nil
}

// withdraw names the keys to the server, and waits until it has obeyed.
func (s *signing) withdraw(ctx context.Context, ids []string) (string, error) {
	known, offline := s.keys(ctx)
	for _, id := range ids {
		if offline == nil && id != "all" && !slices.Contains(known, id) {
			return "", errs.Newf(errs.NotFound,
				"the server has no signing key %q; freshet admin signing-key list shows those that it has", id)
		}
	}
	if err := s.ask(ids); err != nil {
		return "", err
	}
	if offline != nil {
		return fmt.Sprintf("the server does not answer at %s: if it runs, it withdraws %s within a second, else "+
			"when it starts, before it answers anybody",
			s.server, strings.Join(ids, ", ")), nil
	}
	tick := time.NewTicker(resetPoll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(s.file); errors.Is(err, fs.ErrNotExist) {
			return "withdrawn: " + strings.Join(ids, ", ") +
				"\nevery token that was signed so is refused; API keys among them have to be made again", nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", errs.Newf(errs.Unavailable,
				"the server has not withdrawn the keys that %s names; see its log: %w", s.file, ctx.Err())
		}
	}
}

// ask adds the ids to what the server is to withdraw. They are no secret: the
// server's user has to be able to read them, whoever ran the command.
func (s *signing) ask(ids []string) error {
	before, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := contexts.WritePrivate(s.file, append(before, strings.Join(ids, "\n")+"\n"...)); err != nil {
		return err
	}
	if err := os.Chmod(s.file, 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // names of public keys
		return err
	}
	return nil
}
