package schemacmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/schemas"
	"freshet/internal/base/errs"
	"freshet/internal/base/version"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
	"freshet/internal/cli/schemaimport"
)

// importOptions has the flags of schema import. All of them are for imports from a URL.
type importOptions struct {
	env *command.Env

	user, passwordFile, tokenFile, caFile string
	context, prefix                       string
	skipInvalid, dryRun                   bool
}

func newImport(env *command.Env) *cobra.Command {
	o := &importOptions{env: env}
	cmd := &cobra.Command{
		Use:   "import FILE|URL",
		Short: "Import the schemas of a file or of another registry",
		Long: `Import the output of 'freshet schema export', or the schemas of another registry: Confluent
Schema Registry, Karapace, a registry with the same interface, or another Freshet cluster. Ids,
versions, references, soft deletions and compatibility levels stay the same. Existing versions are
skipped, so the command can be repeated after an error, and until clients use the new registry. It
requires write permission for all subjects.

With a URL, the command only reads from the source:

  freshet schema import https://registry.example.com --source-user reader \
    --source-password-file password --dry-run

The credentials of the source are a user and a password, or a bearer token, from files or from the
environment variables FRESHET_SOURCE_USER, FRESHET_SOURCE_PASSWORD and FRESHET_SOURCE_TOKEN. They are
sent to no other address. docs/howto/migrate-registry.md describes a whole migration.`,
		Example: `  # from a file
  freshet schema import registry.jsonl

  # from a pipe
  freshet schema export | freshet schema import -

  # repeating it changes nothing
  freshet schema import registry.jsonl`,
		Args: command.Args(0, "a file, - for standard input, or the URL of a registry"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if strings.HasPrefix(given[0], "http://") || strings.HasPrefix(given[0], "https://") {
				return o.fromRegistry(cmd, given[0])
			}
			return o.fromFile(cmd, given[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.user, "source-user", "", "`user` at the source (FRESHET_SOURCE_USER)")
	f.StringVar(&o.passwordFile, "source-password-file", "",
		"`file` with the password at the source (or FRESHET_SOURCE_PASSWORD)")
	f.StringVar(&o.tokenFile, "source-token-file", "",
		"`file` with a bearer token for the source (or FRESHET_SOURCE_TOKEN)")
	f.StringVar(&o.caFile, "source-ca-file", "", "certificate authority of the source (PEM `file`)")
	f.StringVar(&o.context, "source-context", "", "schema `context` of the source (default: the default context)")
	f.StringVar(&o.prefix, "subject-prefix", "",
		"import only subjects that begin with `text`, and the schemas that they refer to")
	f.BoolVar(&o.skipInvalid, "skip-invalid", false, "skip subjects whose names are not valid here")
	f.BoolVar(&o.dryRun, "dry-run", false, "read and compare everything, and write nothing")
	return cmd
}

// fromFile imports the output of schema export.
func (o *importOptions) fromFile(cmd *cobra.Command, name string) error {
	for _, flag := range []string{
		"source-user", "source-password-file", "source-token-file", "source-ca-file", "source-context",
		"subject-prefix", "skip-invalid", "dry-run",
	} {
		if cmd.Flags().Changed(flag) {
			return command.Usagef(cmd, "--%s needs the URL of a registry, such as https://registry.example.com", flag)
		}
	}
	in := o.env.In
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // only read
		in = file
	}
	c, err := o.env.ClusterClient(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	done, err := schemas.New(c).Import(cmd.Context(), in)
	if err != nil {
		return err
	}
	return o.env.Done(command.Result{
		Kind: "registry", Name: name, Action: "imported", Count: new(done.Versions),
	}, "%d versions and %d levels written, %d lines skipped because they exist", done.Versions, done.Levels, done.Known)
}

// fromRegistry imports from another registry.
func (o *importOptions) fromRegistry(cmd *cobra.Command, address string) error {
	if parsed, err := url.Parse(address); err != nil || parsed.User != nil {
		return command.Usagef(cmd, "URL of the source is not valid, or has a user or password; set --source-user and "+
			"--source-password-file instead") // without the URL, which may have a password
	}
	credentials, err := o.credentials(cmd)
	if err != nil {
		return err
	}
	if credentials != (schemaimport.Credentials{}) {
		if err := contexts.CheckTransport(address, o.env.Flags.InsecureHTTP); err != nil {
			return err
		}
	}
	config := schemaimport.SourceConfig{
		URL: address, Credentials: credentials, Context: o.context, UserAgent: "freshet/" + version.Get().Version,
	}
	if o.caFile != "" {
		if config.CA, err = os.ReadFile(o.caFile); err != nil {
			return err
		}
	}
	source, err := schemaimport.NewSource(config)
	if err != nil {
		return command.Usagef(cmd, "%w", err)
	}
	defer source.Close()
	return o.env.OnCluster(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		return o.copyRegistry(cmd.Context(), address, source, c)
	})(cmd, nil)
}

// copyRegistry copies the source into the cluster, and reports the result.
func (o *importOptions) copyRegistry(ctx context.Context, address string, source *schemaimport.Source,
	c *client.Client,
) error {
	progress := &importProgress{env: o.env, line: o.env.Progress(), terminal: output.IsTerminal(o.env.Err)}
	done, err := schemaimport.Import(ctx, schemaimport.Options{
		Source: source, Target: c, SubjectPrefix: o.prefix, SkipInvalid: o.skipInvalid, DryRun: o.dryRun,
		Progress: progress.show,
	})
	progress.line.Clear()
	for _, text := range done.Warnings {
		_ = o.env.Notef("Warning: %s.\n", output.Clean(text))
	}
	for _, text := range done.Problems {
		_ = o.env.Notef("Problem: %s.\n", output.Clean(text))
	}
	if err != nil {
		if done.Versions+done.Levels > 0 && !done.DryRun {
			_ = o.env.Notef("Until the error, %d versions and %d levels were written. The command can be repeated.\n",
				done.Versions, done.Levels)
		}
		return explainImport(err)
	}
	written := "%d subjects with %d versions read (%d soft-deleted): %d versions and %d levels written, %d existed, " +
		"%d soft-deleted now"
	action := "imported"
	if done.DryRun {
		written = "%d subjects with %d versions read (%d soft-deleted): %d versions and %d levels would be written, " +
			"%d exist, %d would be soft-deleted"
		action = "compared"
	}
	result := command.Result{Kind: "registry", Name: address, Action: action, Count: new(done.Versions)}
	err = o.env.DoneInDetail(result, done, written,
		done.Subjects, done.Read, done.Deleted, done.Versions, done.Levels, done.Existing, done.Removed)
	if err == nil && len(done.Problems) > 0 {
		return errs.Newf(errs.Conflict, "import would fail: %d problems", len(done.Problems))
	}
	return err
}

// explainImport adds a hint at the cause.
func explainImport(err error) error {
	var invalid *schemaimport.NamesError
	var missing *schemaimport.NamespacesError
	switch {
	case errors.As(err, &missing):
		return hint.Add(err, "Create each with 'freshet namespace create %s', and its tenant before it with 'freshet "+
			"tenant create'.", missing.Namespaces[0])
	case errors.As(err, &invalid):
		return hint.Add(err, "Leave these subjects out with --skip-invalid, or choose others with --subject-prefix.")
	case hint.Of(err) != "", !errors.Is(err, schemaimport.ErrSource):
		return err
	case errors.Is(err, client.ErrUnauthenticated), errors.Is(err, client.ErrDenied):
		return hint.Add(err, "Set the credentials of the source with --source-user and --source-password-file, or "+
			"with --source-token-file. They must allow reading all subjects.")
	case errors.Is(err, client.ErrNotFound):
		return hint.Add(err, "The URL is that to which /subjects is appended, with the registry's path if it has one.")
	case errors.Is(err, client.ErrUnavailable):
		return hint.Add(err, "Does the source respond to 'curl URL/subjects'? The command can be repeated.")
	}
	return err
}

// importProgress reports progress on standard error: a line that is rewritten on a terminal, and a line
// for every 1,000 versions elsewhere.
type importProgress struct {
	env      *command.Env
	line     *output.Progress
	terminal bool
	printed  int
}

func (p *importProgress) show(s schemaimport.Summary) {
	if p.terminal {
		p.line.Printf("subject %d of %d, %d versions read, %d written", s.Begun, s.Subjects, s.Read, s.Versions)
		return
	}
	const every = 1000
	if s.Read/every > p.printed {
		p.printed = s.Read / every
		_ = p.env.Notef("subject %d of %d, %d versions read, %d written\n", s.Begun, s.Subjects, s.Read, s.Versions)
	}
}

// credentials returns the credentials for the source. Flags take precedence over the environment.
func (o *importOptions) credentials(cmd *cobra.Command) (schemaimport.Credentials, error) {
	c := schemaimport.Credentials{User: o.user}
	if o.tokenFile != "" && (o.user != "" || o.passwordFile != "") {
		return c, command.Usagef(cmd, "--source-token-file and --source-user are two ways to sign in; set one of them")
	}
	var err error
	if c.Token, err = readSecret(o.tokenFile); err != nil || c.Token != "" {
		return c, err
	}
	if c.Password, err = readSecret(o.passwordFile); err != nil {
		return c, err
	}
	getenv := o.env.Getenv
	if c.User == "" && c.Password == "" && getenv("FRESHET_SOURCE_TOKEN") != "" {
		return schemaimport.Credentials{Token: strings.TrimSpace(getenv("FRESHET_SOURCE_TOKEN"))}, nil
	}
	if c.User == "" {
		c.User = getenv("FRESHET_SOURCE_USER")
	}
	if c.Password == "" {
		c.Password = getenv("FRESHET_SOURCE_PASSWORD")
	}
	if c.User != "" && c.Password == "" {
		return c, command.Usagef(cmd, "user %s of the source has no password; set --source-password-file or "+
			"FRESHET_SOURCE_PASSWORD", c.User)
	}
	return c, nil
}

// maxSecret limits the file of a password or token.
const maxSecret = 64 << 10

// readSecret reads a password or a token, without white space around it. It returns "" for no file.
func readSecret(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || len(text) > maxSecret {
		return "", fmt.Errorf("%s contains no password or token, or more than %d bytes", name, maxSecret)
	}
	return secret, nil
}
