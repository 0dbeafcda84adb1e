package authcmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/internal/base/errs"
	"freshet/internal/base/version"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// login is one run of login.
type login struct {
	env                   *command.Env
	name, instance        string
	inPlace, keepsCurrent bool
	device, opens         bool
}

func newLogin(env *command.Env) *cobra.Command {
	l := login{env: env}
	cmd := &cobra.Command{
		Use:   "login [CREDENTIALS-FILE|-]",
		Short: "Sign in to a server and make a context of it",
		Long: `Sign in to a server and make a context of it, which later commands use.

Without a file you sign in as yourself, through a browser: the command shows an
address and a code. Open the address on any machine, sign in there, compare the code
and say yes. The server is that of --server, else that of the context in effect. The
session is renewed by itself as long as it is used now and then; 'freshet logout' ends
it.

With the credentials file of a service account ('freshet sa credentials' writes one)
nothing else is needed: it names the server and the organization. With an API key,
give the file that holds it as --token-file and the server as --server. Either can
come from standard input (-), so that no secret is ever part of a command line.

The server is asked first; when it refuses, nothing is kept. The secret is copied
into ~/.config/freshet, readable for you alone. --in-place refers to the file where it
is, for one that something else renews.`,
		Example: `  # as yourself, through a browser on this or another machine
  freshet login --server $SERVER --ca-file freshet-data/tls/ca.crt

  # with the credentials file of a service account
  freshet login freshet-data/admin.json

  # under a name of your own, and with another cluster
  freshet login --name staging --cluster default freshet-data/admin.json

  # from a secret store, without a file
  cat freshet-data/admin.json | freshet login --name ci -

  # with an API key
  freshet login --name bot --server $SERVER --ca-file freshet-data/tls/ca.crt --token-file freshet-data/admin.token`,
		Args: command.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if env.Flags.CredentialsFile != "" {
				return command.Usagef(cmd, "give the credentials file as the argument")
			}
			withFile := len(args) > 0 || env.Flags.TokenFile != ""
			switch {
			case len(args) > 0 && env.Flags.TokenFile != "", withFile && (l.device || l.opens):
				return command.Usagef(cmd,
					"say one way to sign in: a credentials file, --token-file and --server, or --device")
			case !withFile && l.inPlace:
				return command.Usagef(cmd, "--in-place needs a file")
			case !withFile && !l.device &&
				cmp.Or(env.Getenv("FRESHET_TOKEN_FILE"), env.Getenv("FRESHET_CREDENTIALS_FILE")) != "":
				return command.Usagef(cmd, "FRESHET_TOKEN_FILE or FRESHET_CREDENTIALS_FILE says who you are, "+
					"whatever the context: unset it, or say --device")
			case !withFile:
				return l.inBrowser(cmd.Context())
			}
			return l.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.name, "name", "", "`name` of the context (default: account@organization)")
	f.StringVar(&l.instance, "instance", "", "`name` of the cluster's instance, for an account that may not look it up")
	f.BoolVar(&l.device, "device", false, "sign in through a browser, whatever the environment says")
	f.BoolVar(&l.opens, "open", false, "open the page in the browser of this machine")
	f.BoolVar(&l.inPlace, "in-place", false, "refer to the file, in place of copying it")
	f.BoolVar(&l.keepsCurrent, "keep-current", false, "do not make it the current context")
	return cmd
}

func (l *login) run(ctx context.Context, file string) error {
	selection := l.env.Selection()
	c := contexts.Context{Name: l.name, Cluster: selection.Cluster, Instance: cmp.Or(l.instance, selection.Instance)}
	if err := readAuthority(&c, selection.CAFile); err != nil {
		return err
	}
	secret, tokens, err := l.secret(&c, file, selection)
	if err != nil {
		return err
	}
	conn, err := client.New(client.Config{
		BaseURL: c.Server, CA: []byte(c.CA), TokenSource: tokens,
		UserAgent: "freshet/" + version.Get().Version,
	})
	if err != nil {
		return err
	}
	who, err := whoami(ctx, conn)
	if err != nil {
		return explain(err, c.Server)
	}
	c.Organization = cmp.Or(selection.Organization, who.Organization, c.Organization)
	c.Name = cmp.Or(c.Name, who.Name+"@"+who.Organization)
	if err := l.keep(&c, secret); err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.env.Out, "signed in to %s as %s; the context is %s\n", c.Server, who.Principal, c.Name)
	return err
}

// readAuthority gives a context the authority of a file, if one is named.
func readAuthority(c *contexts.Context, file string) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return errs.Newf(errs.NotFound, "reading the certificate authority: %w", err)
	}
	c.CA = string(text)
	return nil
}

// secret reads what proves who one is, and says where it is good. It is nil for a
// file that stays where it is.
func (l *login) secret(c *contexts.Context, file string,
	selection contexts.Selection,
) ([]byte, client.TokenSource, error) {
	path := cmp.Or(file, selection.TokenFile)
	text, err := l.read(path)
	if err != nil {
		return nil, nil, err
	}
	var tokens client.TokenSource
	if file == "" {
		c.Server = strings.TrimRight(selection.Server, "/")
		if c.Server == "" {
			return nil, nil, hint.Add(errs.New(errs.Invalid, "an API key does not say which server it is for"),
				"Name it with --server URL.")
		}
		c.Credential.TokenFile = path
		tokens = client.StaticToken(string(bytes.TrimSpace(text)))
	} else {
		credentials, err := contexts.ParseCredentials(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		c.Server = strings.TrimRight(cmp.Or(selection.Server, credentials.Server()), "/")
		if c.Server == "" {
			return nil, nil, hint.Add(errs.New(errs.Invalid, "the credentials do not say which server they are for"),
				"Name it with --server URL.")
		}
		c.Credential.File = path
		tokens, err = client.ClientCredentials(client.Credentials{
			ClientID:     credentials.ClientID,
			ClientSecret: credentials.ClientSecret,
		},
			client.CredentialsOptions{TokenURL: c.Server + "/oauth/token", CA: []byte(c.CA)})
		if err != nil {
			return nil, nil, err
		}
	}
	return text, tokens, contexts.CheckServer(c.Server)
}

// maxSecret bounds what is read of a file that may be another one.
const maxSecret = 64 << 10

func (l *login) read(path string) ([]byte, error) {
	if path == "-" {
		if l.inPlace {
			return nil, errs.New(errs.Invalid, "--in-place needs a file, not standard input")
		}
		return io.ReadAll(io.LimitReader(l.env.In, maxSecret))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errs.Newf(errs.NotFound, "reading the credentials: %w", err)
	}
	if len(text) > maxSecret {
		return nil, errs.Newf(errs.Invalid, "%s is too large to be a credentials file or an API key", path)
	}
	return text, nil
}

// keep writes the secret and the context, in this order: a context without its
// secret would be of no use.
func (l *login) keep(c *contexts.Context, secret []byte) (err error) {
	kept := &c.Credential.File
	if c.Credential.TokenFile != "" {
		kept = &c.Credential.TokenFile
	}
	if l.inPlace {
		*kept, err = filepath.Abs(*kept)
	} else {
		*kept, err = contexts.Keep(contexts.Directory(l.env.Getenv), c.Name, secret)
	}
	if err != nil {
		return err
	}
	return l.put(c)
}

// put writes the context.
func (l *login) put(c *contexts.Context) error {
	return contexts.Update(l.env.Selection().File, func(f *contexts.File) error {
		if err := f.Put(*c); err != nil {
			return err
		}
		if !l.keepsCurrent || f.Current == "" {
			f.Current = c.Name
		}
		return nil
	})
}

// explain adds what to do about the ways in which signing in fails.
func explain(err error, server string) error {
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &authority):
		return hint.Add(err,
			"When the server made its certificate authority itself, give it: --ca-file DATA-DIR/tls/ca.crt")
	case errors.Is(err, client.ErrUnauthenticated):
		return hint.Add(err, "The secret is not, or no longer, good at %s. 'freshet sa credentials NAME' writes the "+
			"present one.", server)
	}
	return err
}
