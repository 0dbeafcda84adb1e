package identitycmd

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

func newAccount(env *command.Env) *cobra.Command {
	return command.Parent(&cobra.Command{
		Use:     "sa",
		Aliases: []string{"serviceaccount"},
		Short:   "Create, list and delete service accounts, get and rotate their credentials",
		Example: `  # create an account and write its credentials file
  freshet sa create ci --out ci.json

  # write the file again
  freshet sa credentials ci --out ci.json

  # new credentials; the old ones work for another hour
  freshet sa rotate ci --overlap 1h --out ci.json`,
	}, newAccountCreate(env), newAccountList(env), newCredentials(env), newRotate(env), newAccountDelete(env))
}

// roleAnnotation makes an account an administrator of its organization.
const roleAnnotation = "annotations.cloud.vendor.io/service-account-role"

func newAccountCreate(env *command.Env) *cobra.Command {
	var out string
	var admin bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a service account",
		Long: `Create a service account, and wait until it can be used. It has no permissions until you
grant it a role ('freshet grant'). With --admin it is an administrator of its
organization, which cannot be changed later.`,
		Example: `  # create an account for a pipeline, and write its credentials file
  freshet sa create pipeline --out pipeline.json

  # grant it a role
  freshet grant topic-producer --to pipeline --on topic=public/default/orders

  # create an administrator of another organization
  freshet org create branch && freshet sa create boss -n branch --admin`,
		Args: command.OneArg("the name of the account"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, at, err := env.Resources()
			if err != nil {
				return err
			}
			metadata := map[string]any{"name": args[0]}
			if admin {
				metadata["annotations"] = map[string]any{roleAnnotation: "admin"}
			}
			_, err = r.Create(cmd.Context(), resources.ServiceAccounts, at.Organization, map[string]any{
				"apiVersion": resources.ServiceAccounts.APIVersion(), "kind": "ServiceAccount", "metadata": metadata,
			}, resources.WriteOptions{FieldManager: fieldManager})
			if errors.Is(err, client.ErrConflict) {
				return hint.Add(err, "'freshet sa credentials %s' writes the credentials of the existing account.",
					args[0])
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			account, err := ready(ctx, r, resources.Ref{
				Kind: resources.ServiceAccounts, Organization: at.Organization,
				Name: args[0],
			})
			if err != nil {
				return err
			}
			if err := env.Done(command.Result{Kind: "serviceaccount", Name: args[0], Action: "created"},
				"service account %s created in organization %s", args[0], at.Organization); err != nil || out == "" {
				return err
			}
			return writeCredentials(env, account.Text("status", "privateKeyData"), out)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "write its credentials to this `file`, or - for standard output")
	cmd.Flags().BoolVar(&admin, "admin", false, "make the account an administrator of the organization")
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait until the account can be used")
	return cmd
}

// writeCredentials writes a credentials file that only its owner can read.
func writeCredentials(env *command.Env, data, out string) error {
	if data == "" {
		return hint.Add(errs.New(errs.Denied, "credentials of this account are not visible to you"),
			"Reading them requires the permission cloud.credentials.describe, and all permissions of the account.")
	}
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("decoding the account's credentials: %w", err)
	}
	if out == "-" {
		_, err = env.Out.Write(text)
		return err
	}
	if err := contexts.WritePrivate(out, text); err != nil || !env.ResultIsText() {
		return err
	}
	return env.Notef("credentials written to %s; sign in with 'freshet login %s'\n", out, out)
}

func newCredentials(env *command.Env) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "credentials NAME",
		Short: "Write the credentials file of an account",
		Long: `Write the credentials file of an account, for 'freshet login'. Only you can read it. The
default file is ORGANIZATION-NAME.json.`,
		Example: `  # to default-reader.json
  freshet sa credentials reader

  # to another file
  freshet sa credentials reader --out reader.json

  # sign in without a file
  freshet sa credentials reader --out - | freshet login --name reader -`,
		Args:              command.OneArg("the name of the account"),
		ValidArgsFunction: completeNames(env, resources.ServiceAccounts, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, at, err := env.Resources()
			if err != nil {
				return err
			}
			account, err := r.Get(cmd.Context(),
				resources.Ref{Kind: resources.ServiceAccounts, Organization: at.Organization, Name: args[0]})
			if err != nil {
				return explainNoAccount(err, at.Organization)
			}
			file := cmp.Or(out, at.Organization+"-"+args[0]+".json")
			err = writeCredentials(env, account.Text("status", "privateKeyData"), file)
			if err != nil || file == "-" || env.ResultIsText() {
				return err
			}
			return env.Done(command.Result{Kind: "serviceaccount", Name: args[0], Action: "written", File: file}, "")
		},
	}
	cmd.Flags().StringVar(&out, "out", "",
		"`file` to write, or - for standard output (default ORGANIZATION-NAME.json)")
	return cmd
}

// explainNoAccount adds a hint at the list of accounts to the server's error about a missing one.
func explainNoAccount(err error, organization string) error {
	if !errors.Is(err, client.ErrNotFound) {
		return err
	}
	return hint.Add(err, "'freshet sa list' lists the accounts of organization %s, 'freshet sa create' creates one.",
		organization)
}

// rotation has the flags of one rotate command.
type rotation struct {
	env     *command.Env
	out     string
	overlap time.Duration
	end     bool
}

func newRotate(env *command.Env) *cobra.Command {
	k := rotation{env: env}
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Create new credentials for an account",
		Long: `Create new credentials for an account. The old ones work for another 24 hours, or for
--overlap, so that you can deploy the new ones first; --end-replaced ends them earlier.
API keys do not change.

If the context uses the account's credentials file, the file is updated too.`,
		Example: `  # new credentials; the old ones work for another day
  freshet sa rotate worker --out worker.json

  # when the new ones are deployed: end the old ones
  freshet sa rotate worker --end-replaced

  # after a leak: end the old ones immediately
  freshet sa rotate worker --overlap 0s --out worker.json`,
		Args:              command.OneArg("the name of the account"),
		ValidArgsFunction: completeNames(env, resources.ServiceAccounts, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if k.end && (k.out != "" || cmd.Flags().Changed("overlap")) {
				return command.Usagef(cmd, "--end-replaced creates no credentials; use it without --out and --overlap")
			}
			return k.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&k.out, "out", "", "`file` to write (default ORGANIZATION-NAME.json)")
	cmd.Flags().DurationVar(&k.overlap, "overlap", 24*time.Hour,
		"how long the old credentials work; 0s ends them immediately")
	cmd.Flags().BoolVar(&k.end, "end-replaced", false, "create no new credentials, and end the replaced ones")
	return cmd
}

func (k *rotation) run(ctx context.Context, name string) error {
	r, at, err := k.env.Resources()
	if err != nil {
		return err
	}
	spec := map[string]any{"overlapSeconds": int(k.overlap.Seconds())}
	if k.end {
		spec = map[string]any{"endReplaced": true}
	}
	own := k.ownCredentials(at, name)
	if own.ClientSecret != "" {
		spec["clientSecret"] = own.ClientSecret
	}
	result, err := r.Post(ctx, resources.Ref{
		Kind: resources.ServiceAccounts, Organization: at.Organization,
		Name: name,
	}, "rotate",
		map[string]any{
			"apiVersion": resources.ServiceAccounts.APIVersion(), "kind": "CredentialsRotation",
			"spec": spec,
		})
	if err != nil {
		return explainNoAccount(err, at.Organization)
	}
	if k.end {
		return k.env.Done(command.Result{Kind: "serviceaccount", Name: name, Action: "ended"},
			"only the newest credentials of %s work now", name)
	}
	out := cmp.Or(k.out, at.Organization+"-"+name+".json")
	if err := writeCredentials(k.env, result.Text("status", "privateKeyData"), out); err != nil {
		return err
	}
	if own.ClientSecret != "" && out != "-" && out != at.Credential.File {
		if err := copyPrivate(out, at.Credential.File); err != nil {
			return fmt.Errorf("updating the credentials of context %s, which still has the old ones: %w", at.Name, err)
		}
	}
	ends := cmp.Or(result.Text("status", "replaced", "expirationTime"), "now")
	if out == "-" && !k.env.ResultIsText() {
		return nil // the credentials are the output
	}
	rotated := command.Result{Kind: "serviceaccount", Name: name, Action: "rotated", File: out, Until: ends}
	return k.env.Done(rotated, "%s has new credentials; the old ones end: %s", name, ends)
}

// ownCredentials returns the context's credentials if they belong to the account, else empty ones.
func (k *rotation) ownCredentials(at contexts.Context, name string) contexts.Credentials {
	if at.Credential.File == "" {
		return contexts.Credentials{}
	}
	credentials, err := contexts.ReadCredentials(at.Credential.File)
	if err != nil || credentials.Account() != name || credentials.Organization() != at.Organization {
		return contexts.Credentials{}
	}
	return credentials
}

func copyPrivate(from, to string) error {
	text, err := os.ReadFile(filepath.Clean(from))
	if err != nil {
		return err
	}
	return contexts.WritePrivate(to, text)
}
