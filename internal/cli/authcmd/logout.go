package authcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/session"
	"freshet/internal/cli/tokencache"
)

func newLogout(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "logout [CONTEXT]",
		Short: "Sign out and delete the context",
		Long: `Sign out and delete the context in use, or the named one. The session of a user who
signed in through a browser is ended on the server, with all its tokens. For a service
account the stored copy of the credentials is deleted; the account itself does not
change.`,
		Example: `  # the context in use
  freshet logout

  # another context
  freshet logout staging

  # list the contexts
  freshet context list`,
		Args:              command.MaxArgs(1),
		ValidArgsFunction: completeContexts(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return deleteContext(cmd.Context(), env, args[0])
			}
			c, err := env.Context()
			if err != nil {
				return err
			}
			if c.Name == "" || c.Name == contexts.LocalName {
				return errs.New(errs.Invalid,
					"you are not signed in: the context in use was not created by 'freshet login'")
			}
			return deleteContext(cmd.Context(), env, c.Name)
		},
	}
}

// deleteContext deletes a context and its secret, and ends the session on the server. It deletes
// the secret even if the server cannot be reached: without it the session cannot be renewed
// and expires.
func deleteContext(ctx context.Context, env *command.Env, name string) error {
	file, err := contexts.Load(env.Selection().File)
	if err != nil {
		return err
	}
	deleted, ok := file.Get(name)
	if !ok {
		return errNoContext(name)
	}
	ended := ""
	if path := deleted.Credential.Session; path != "" {
		if err := session.End(ctx, path); err == nil {
			ended = ", and the session has ended"
		} else if _, err := fmt.Fprintf(env.Err,
			"Warning: the session was not ended on the server and will expire there: %v\n", err); err != nil {
			return err
		}
	}
	err = contexts.Update(env.Selection().File, func(f *contexts.File) error {
		f.Remove(name)
		return nil
	})
	if err != nil {
		return err
	}
	if err := errors.Join(contexts.RemoveSecret(contexts.Directory(env.Getenv), deleted),
		tokencache.Clear(tokencache.Directory(env.Getenv))); err != nil {
		return err
	}
	return env.Done(command.Result{Kind: "context", Name: name, Action: "deleted"}, "context %s deleted%s", name, ended)
}
