// Package apikeycmd implements the commands for API keys. It generates the key pair that
// the server encrypts a token to. The private key never leaves this machine: it is stored
// in the user's configuration directory with mode 0600. The keys themselves are resources
// that client/resources reads and writes.
package apikeycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// Commands returns `freshet apikey`.
func Commands(env *command.Env) []*cobra.Command {
	cmd := command.Parent(&cobra.Command{
		Use:     "apikey",
		Aliases: []string{"ak"},
		Short:   "Create, decrypt, list, rotate and revoke API keys",
		Long: `Create, decrypt, list, rotate and revoke API keys: long-lived tokens of service accounts.

The server encrypts the token to a key pair that this command generates. The private key
is stored in ~/.config/freshet/keys, readable only by you, and is never sent. Without it
the token cannot be decrypted.`,
		Example: `  # create a key for an account, valid for 30 days, and write an environment file
  freshet apikey create web --account shop --expires 30d --env-file web.env

  # print its token again
  freshet apikey decrypt web > token

  # replace it; both keys work until the old one is revoked
  freshet apikey rotate web --env-file web.env && freshet apikey revoke web`,
	}, newCreate(env), newDecrypt(env), newList(env), newRevoke(env), newRotate(env))
	return command.InSection(command.SectionResources, cmd)
}

// fieldManager is the field manager of the objects that these commands write.
const fieldManager = "freshet"

// keys is the connection of one command, and the context in use.
type keys struct {
	*resources.Client
	env *command.Env
	at  contexts.Context
}

func connect(env *command.Env) (*keys, error) {
	r, at, err := env.Resources()
	return &keys{r, env, at}, err
}

func (k *keys) ref(name string) resources.Ref {
	return resources.Ref{Kind: resources.APIKeys, Organization: k.at.Organization, Name: name}
}

// get reads a key. A missing key is an error with a hint at the list of keys.
func (k *keys) get(ctx context.Context, name string) (resources.Object, error) {
	key, err := k.Get(ctx, k.ref(name))
	if errors.Is(err, client.ErrNotFound) {
		return nil, hint.Add(err, "'freshet apikey list' shows the keys of organization %s.", k.at.Organization)
	}
	return key, err
}

// tokenFiles names the files that get a token.
type tokenFiles struct {
	file, env string
	format    output.Format
	explain   bool // print on standard error what the recipient of a printed token needs besides it
}

func (d *tokenFiles) addFlags(f *pflag.FlagSet) {
	output.AddFlag(f, &d.format, output.FormatText, output.FormatJSON, output.FormatYAML)
	f.StringVar(&d.file, "out", "", "write the token to this `file` instead of printing it")
	f.StringVar(&d.env, "env-file", "",
		"write the token to this `file` as an environment variable, with the server and the cluster")
}

// writeToken prints the token of a key, or writes it to files with mode 0600. instance is the
// instance for which the key is valid, "" for all.
func (k *keys) writeToken(ctx context.Context, d tokenFiles, instance, token string) error {
	var failed error
	if d.file != "" {
		failed = contexts.WritePrivate(d.file, []byte(token+"\n"))
	}
	h, err := k.handOver(ctx, instance, token)
	if d.env != "" {
		if err == nil {
			err = contexts.WritePrivate(d.env, []byte(h.variables()))
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return hint.Add(failed,
			"The key exists and its private key is stored: 'freshet apikey decrypt NAME' prints the token.")
	}
	if d.file != "" || d.env != "" {
		return nil
	}
	if d.format.IsData() {
		return output.Value(k.env.Out, d.format, h)
	}
	if _, err := fmt.Fprintln(k.env.Out, token); err != nil || !d.explain {
		return err
	}
	h.Token = "(the token above)"
	return k.env.Notef("Its recipient needs these variables, which --env-file writes to a file:\n%s", h.variables())
}

// keyFile returns the path of the file that stores the private key of an API key.
func (k *keys) keyFile(name string) string {
	server := strings.NewReplacer("://", "-", "/", "-", ":", "-").Replace(k.at.Server)
	return filepath.Join(contexts.Directory(k.env.Getenv), "keys", server, k.at.Organization, name+".pem")
}

func newDecrypt(env *command.Env) *cobra.Command {
	var d tokenFiles
	var private string
	cmd := &cobra.Command{
		Use:     "decrypt NAME",
		Aliases: []string{"open"},
		Short:   "Print the token of a key that was created on this machine",
		Long: `Print the token of a key: fetch the encrypted token and decrypt it with the private key
that is stored on this machine, or with the file of --private-key (PEM; PKCS #8 or
PKCS #1).`,
		Example: `  # write the token to a file with mode 0600
  freshet apikey decrypt opened --out token

  # write an environment file for a service
  freshet apikey decrypt opened --env-file opened.env

  # with your own private key
  freshet apikey decrypt opened --private-key private.pem > token`,
		Args:              command.OneArg("the name of the key"),
		ValidArgsFunction: completeKeys(env, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := connect(env)
			if err != nil {
				return err
			}
			key, err := k.get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			pem, err := os.ReadFile(cmp.Or(private, k.keyFile(args[0])))
			if err != nil {
				return hint.Add(errs.Newf(errs.Invalid, "private key of %s is not on this machine: %w", args[0], err),
					"Set the file with --private-key. Without the private key the token is lost: create another key "+
						"with 'freshet apikey rotate %s'.", args[0])
			}
			token, err := decryptToken(key, pem)
			if err != nil {
				return err
			}
			return k.writeToken(cmd.Context(), d, key.Text("spec", "instanceName"), token)
		},
	}
	d.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&private, "private-key", "",
		"`file` of the private key (default: the file that create wrote)")
	return cmd
}

func newList(env *command.Env) *cobra.Command {
	var format output.Format
	var account string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the API keys of the organization",
		Example: `  # with their state and expiry
  freshet apikey list

  # the keys of one account, with the paths of their private keys
  freshet apikey list --account shop -o wide

  # names only, for scripts
  freshet apikey list -o name`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := connect(env)
			if err != nil {
				return err
			}
			var o resources.ListOptions
			if account != "" {
				o.FieldSelector = "spec.serviceAccountName=" + account
			}
			list, err := k.List(cmd.Context(), resources.APIKeys, k.at.Organization, o)
			if err != nil {
				return err
			}
			return k.print(list, format)
		},
	}
	output.AddFlag(cmd.Flags(), &format, output.FormatTable, output.FormatWide, output.FormatJSON, output.FormatYAML,
		output.FormatName)
	cmd.Flags().StringVar(&account, "account", "", "list only the keys of this service `account`")
	completeAccount(cmd, env)
	return cmd
}

func (k *keys) print(list []resources.Object, format output.Format) error {
	style := k.env.Style()
	t := output.Table{
		Columns: append(output.Columns("Name", "Account", "Instance", "State", "Ends", "Age"),
			output.Column{Name: "Private key", Wide: true}),
		Wide: format == output.FormatWide,
		Paint: func(column int, cell string) string {
			switch {
			case column == 3 && cell == "Issued":
				return style.Good(cell)
			case column == 3:
				return style.Bad(cell)
			}
			return cell
		},
	}
	for _, key := range list {
		instance := cmp.Or(key.Text("spec", "instanceName"), "(all)")
		kept := "not here"
		if file := k.keyFile(key.Name()); fileExists(file) {
			kept = file
		}
		t.Rows = append(t.Rows, []string{
			key.Name(), key.Text("spec", "serviceAccountName"), instance, state(key), expiry(key),
			output.AgeOf(key.Text("metadata", "creationTimestamp")), kept,
		})
	}
	return k.env.List(format, list, &t, fmt.Sprintf("No API keys in organization %s. Create one with 'freshet apikey "+
		"create NAME --account ACCOUNT'.", k.at.Organization))
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// state summarizes the three conditions of a key in one word.
func state(key resources.Object) string {
	for _, name := range []string{"Revoked", "Expired", "Issued"} {
		if c := key.Condition(name); c.Status == "True" {
			return c.Type
		}
	}
	return cmp.Or(key.Condition("Issued").Reason, "Pending")
}

func expiry(key resources.Object) string {
	moment, err := time.Parse(time.RFC3339, key.Text("spec", "expirationTime"))
	if err != nil {
		return "never"
	}
	if left := time.Until(moment); left > 0 {
		return "in " + output.Age(left)
	}
	return output.Age(time.Since(moment)) + " ago"
}
