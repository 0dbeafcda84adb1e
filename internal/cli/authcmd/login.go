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

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/base/version"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// login has the flags of one login command.
type login struct {
	env                  *command.Env
	name, instance       string
	inPlace, keepCurrent bool
	device, openBrowser  bool

	tokens client.TokenSource // of the credential that is checked
}

func newLogin(env *command.Env) *cobra.Command {
	l := login{env: env}
	cmd := &cobra.Command{
		Use:   "login [CREDENTIALS-FILE|-]",
		Short: "Sign in to a server and create a context",
		Long: `Sign in to a server and create a context, which later commands use.

Without a file you sign in as a user, through a browser: the command shows an address and
a code. Open the address on any machine, sign in, compare the code and approve. The server
is that of --server, else that of the context in use. Using the session renews it;
'freshet logout' ends it.

The credentials file of a service account ('freshet sa credentials' writes one) names the
server and the organization. For an API key, pass its file as --token-file, and --server.
Both can be read from standard input (-), so that no secret is part of a command line.
With the variables of 'freshet apikey create --env-file' in the environment, the command
signs in with the key in FRESHET_API_KEY.

The command checks the credentials on the server first, and stores nothing if the server
rejects them. It copies the secret into ~/.config/freshet, readable only by you.
--in-place refers to the file instead, for a file that another program renews.`,
		Example: `  # as a user, through a browser on this or another machine
  freshet login --server $SERVER --ca-file freshet-data/tls/ca.crt

  # with the credentials file of a service account
  freshet login freshet-data/admin.json

  # with your own context name, and another cluster
  freshet login --name staging --cluster default freshet-data/admin.json

  # from a secret store, without a file
  cat freshet-data/admin.json | freshet login --name ci -

  # with an API key
  freshet login --name bot --server $SERVER --ca-file freshet-data/tls/ca.crt --token-file freshet-data/admin.token`,
		Args: command.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if env.Flags.CredentialsFile != "" {
				return command.Usagef(cmd, "--credentials-file has no effect here; pass the file as the argument")
			}
			// The recipient of an environment file signs in with the key in it.
			withFile := len(args) > 0 || env.Flags.TokenFile != "" ||
				env.Selection().APIKey != "" && !l.device && !l.openBrowser
			switch {
			case len(args) > 0 && env.Flags.TokenFile != "", withFile && (l.device || l.openBrowser):
				return command.Usagef(cmd,
					"choose one way to sign in: a credentials file, --token-file and --server, or --device")
			case !withFile && l.inPlace:
				return command.Usagef(cmd, "--in-place requires a file")
			case !withFile && !l.device &&
				cmp.Or(env.Getenv("FRESHET_TOKEN_FILE"), env.Getenv("FRESHET_CREDENTIALS_FILE")) != "":
				return command.Usagef(cmd, "FRESHET_TOKEN_FILE or FRESHET_CREDENTIALS_FILE overrides the credentials "+
					"of every context; unset it, or use --device")
			case !withFile:
				return l.signInWithBrowser(cmd.Context())
			}
			return l.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.name, "name", "", "`name` of the context (default: account@organization)")
	f.StringVar(&l.instance, "instance", "",
		"`name` of the cluster's instance, for an account that may not read the cluster")
	f.BoolVar(&l.device, "device", false, "sign in through a browser, and ignore credentials in the environment")
	f.BoolVar(&l.openBrowser, "open", false, "open the page in the browser of this machine")
	f.BoolVar(&l.inPlace, "in-place", false, "refer to the file instead of copying it")
	f.BoolVar(&l.keepCurrent, "keep-current", false, "do not make the new context the current one")
	return cmd
}

func (l *login) run(ctx context.Context, file string) error {
	selection := l.env.Selection()
	c := contexts.Context{Name: l.name, Cluster: selection.Cluster, Instance: cmp.Or(l.instance, selection.Instance)}
	if err := readAuthority(&c, selection); err != nil {
		return err
	}
	secret, tokens, err := l.readSecret(&c, file, selection)
	if err != nil {
		return err
	}
	l.tokens, c.InsecureHTTP = tokens, selection.InsecureHTTP
	if err := contexts.CheckTransport(c.Server, c.InsecureHTTP); err != nil {
		return err
	}
	conn, err := client.New(client.Config{
		BaseURL: c.Server, CA: []byte(c.CA), TokenSource: tokens,
		UserAgent: "freshet/" + version.Get().Version,
	})
	if err != nil {
		return err
	}
	caller, err := l.identify(ctx, conn, &c, selection)
	if err != nil {
		return explainSignIn(err, c.Server)
	}
	c.Organization = cmp.Or(selection.Organization, caller.Organization, c.Organization)
	c.Name = cmp.Or(c.Name, caller.Name+"@"+caller.Organization)
	if err := l.store(&c, secret); err != nil {
		return err
	}
	return l.env.Done(command.Result{Kind: "context", Name: c.Name, Action: "created"},
		"signed in to %s as %s; the context is %s", c.Server, caller.Principal, c.Name)
}

// readAuthority sets the certificate authority of a context, if the selection has one.
func readAuthority(c *contexts.Context, selection contexts.Selection) (err error) {
	c.CA, err = selection.Authority(c.CA)
	return err
}

// readSecret reads the credentials file or the API key, and sets the context's server and
// credential.
func (l *login) readSecret(c *contexts.Context, file string,
	selection contexts.Selection,
) ([]byte, client.TokenSource, error) {
	path := cmp.Or(file, selection.TokenFile)
	var text []byte
	var err error
	if path == "" {
		path, text = "FRESHET_API_KEY", []byte(selection.APIKey)
	} else {
		text, err = l.read(path)
	}
	if err != nil {
		return nil, nil, err
	}
	var tokens client.TokenSource
	if file == "" {
		c.Server = strings.TrimRight(selection.Server, "/")
		if c.Server == "" {
			return nil, nil, hint.Add(errs.New(errs.Invalid, "server is missing; an API key does not name its server"),
				"Set it with --server URL.")
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
			return nil, nil, hint.Add(errs.New(errs.Invalid, "credentials name no server"), "Set it with --server URL.")
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

// maxSecret is the size limit in bytes. It rejects files that cannot be credentials.
const maxSecret = 64 << 10

func (l *login) read(path string) ([]byte, error) {
	if path == "-" {
		if l.inPlace {
			return nil, errs.New(errs.Invalid, "--in-place requires a file, not standard input")
		}
		return io.ReadAll(io.LimitReader(l.env.In, maxSecret))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errs.Newf(errs.Invalid, "reading the credentials: %w", err)
	}
	if len(text) > maxSecret {
		return nil, errs.Newf(errs.Invalid, "%s is too large to be a credentials file or an API key", path)
	}
	return text, nil
}

// store stores the secret and then the context, because a context without its secret would
// not work.
func (l *login) store(c *contexts.Context, secret []byte) (err error) {
	stored := &c.Credential.File
	if c.Credential.TokenFile != "" {
		stored = &c.Credential.TokenFile
	}
	if l.inPlace {
		*stored, err = filepath.Abs(*stored)
	} else {
		*stored, err = contexts.StoreSecret(contexts.Directory(l.env.Getenv), c.Name, secret)
	}
	if err != nil {
		return err
	}
	return l.saveContext(c)
}

// saveContext writes the context to the context file.
func (l *login) saveContext(c *contexts.Context) error {
	return contexts.Update(l.env.Selection().File, func(f *contexts.File) error {
		if err := f.Put(*c); err != nil {
			return err
		}
		if !l.keepCurrent || f.Current == "" {
			f.Current = c.Name
		}
		return nil
	})
}

// explainSignIn adds a hint to an error of signing in.
func explainSignIn(err error, server string) error {
	var authority x509.UnknownAuthorityError
	switch {
	case errors.As(err, &authority):
		return hint.Add(err,
			"If the server generated its own certificate authority, pass it: --ca-file DATA-DIR/tls/ca.crt")
	case errors.Is(err, client.ErrUnauthenticated):
		return hint.Add(err, "The secret is not valid, or no longer valid, on %s. 'freshet sa credentials NAME' "+
			"writes the current one.", server)
	}
	return err
}
