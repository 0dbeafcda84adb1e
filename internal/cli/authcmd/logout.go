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
		Short: "Sign out, and forget the context",
		Long: `Sign out, and forget the context that is in effect, or the one that is named. The
session of a person who signed in through a browser is ended at the server, with all
its tokens. Of a service account the copy of the credentials is removed; the account
stays as it is.`,
		Example: `  # of the context in effect
  freshet logout

  # of another
  freshet logout staging

  # which are there?
  freshet context list`,
		Args:              command.AtMost(1),
		ValidArgsFunction: completeContexts(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return forget(cmd.Context(), env, args[0])
			}
			c, err := env.Context()
			if err != nil {
				return err
			}
			if c.Name == "" || c.Name == contexts.LocalName {
				return errs.New(errs.NotFound,
					"you are not signed in: no context is in effect that 'freshet login' made")
			}
			return forget(cmd.Context(), env, c.Name)
		},
	}
}

// forget removes a context and its secret, and ends the session at the server. When
// that cannot be had, the secret goes all the same: nobody can renew the session then.
func forget(ctx context.Context, env *command.Env, name string) error {
	file, err := contexts.Load(env.Selection().File)
	if err != nil {
		return err
	}
	gone, ok := file.Get(name)
	if !ok {
		return noContext(name)
	}
	ended := ""
	if path := gone.Credential.Session; path != "" {
		if err := session.End(ctx, path); err == nil {
			ended = ", and the session has ended"
		} else if _, err := fmt.Fprintf(env.Err,
			"Warning: the session was not ended at the server, and ends there by itself: %v\n", err); err != nil {
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
	if err := errors.Join(contexts.Forget(contexts.Directory(env.Getenv), gone),
		tokencache.Clear(tokencache.Directory(env.Getenv))); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Out, "context %s is gone%s\n", name, ended)
	return err
}
