// Package command has what every command uses: the process's streams and environment, the
// flags that choose a server and credentials, the clients for that server, and the errors
// for an invalid command line. It has no commands; each command family is another package
// below internal/cli, whose constructors take an Env.
package command

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet/internal/cli/contexts"
	"freshet/internal/cli/output"
	"freshet/internal/config"
)

// Streams are the process's input and output.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Env is the environment in which a command runs.
type Env struct {
	Streams
	// Getenv looks up an environment variable.
	Getenv func(string) string
	// Flags are the global flags.
	Flags Flags

	resultFormat output.Format // of Done
}

// Flags are the global flags, which choose a server and credentials. Each takes
// precedence over an environment variable FRESHET_….
type Flags struct {
	Context, Server, CAFile    string
	Organization, Cluster      string
	CredentialsFile, TokenFile string
	// InsecureHTTP allows sending credentials over plain HTTP to another machine.
	InsecureHTTP bool
	// Verbose prints every request on standard error.
	Verbose bool
}

// The names of the flags that choose a connection.
const (
	flagContext      = "context"
	flagServer       = "server"
	flagCAFile       = "ca-file"
	flagOrganization = "organization"
	flagCluster      = "cluster"
	flagCredentials  = "credentials-file"
	flagToken        = "token-file"
	flagInsecure     = "insecure-http"
	flagVerbose      = "verbose"
	flagNamespace    = "namespace" // what kubectl calls an organization
)

// AddFlags adds the global flags to the root command's flag set.
func (e *Env) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&e.Flags.Context, flagContext, "", "`context` to use (FRESHET_CONTEXT)")
	f.StringVar(&e.Flags.Server, flagServer, "", "base `URL` of the server (FRESHET_SERVER)")
	f.StringVar(&e.Flags.CAFile, flagCAFile, "", "certificate authority to trust (PEM `file`, FRESHET_CA_FILE)")
	f.StringVarP(&e.Flags.Organization, flagOrganization, "n", "",
		"`organization` to use, the namespace of kubectl (FRESHET_ORGANIZATION)")
	f.StringVar(&e.Flags.Cluster, flagCluster, "", "`cluster` to use for messages and schemas (FRESHET_CLUSTER)")
	f.StringVar(&e.Flags.CredentialsFile, flagCredentials, "",
		"credentials `file` of a service account (FRESHET_CREDENTIALS_FILE)")
	f.StringVar(&e.Flags.TokenFile, flagToken, "", "`file` with an API key or token (FRESHET_TOKEN_FILE)")
	f.BoolVar(&e.Flags.InsecureHTTP, flagInsecure, false,
		"send credentials over plain HTTP to another machine, which anybody on the way can read")
	f.BoolVarP(&e.Flags.Verbose, flagVerbose, "v", false, "print every request with its time, without secrets")
	f.StringVar(&e.Flags.Organization, flagNamespace, "", "")
	_ = f.MarkHidden(flagNamespace) // fails only for a flag that does not exist
}

// Selection returns the connection settings of flags and environment.
func (e *Env) Selection() contexts.Selection {
	selection := contexts.Selection{
		File:            contexts.Path(e.Getenv),
		DataDir:         e.DataDir(),
		Context:         cmp.Or(e.Flags.Context, e.Getenv("FRESHET_CONTEXT")),
		Server:          cmp.Or(e.Flags.Server, e.Getenv("FRESHET_SERVER")),
		CAFile:          cmp.Or(e.Flags.CAFile, e.Getenv("FRESHET_CA_FILE")),
		Organization:    cmp.Or(e.Flags.Organization, e.Getenv("FRESHET_ORGANIZATION")),
		Cluster:         cmp.Or(e.Flags.Cluster, e.Getenv("FRESHET_CLUSTER")),
		Instance:        e.Getenv("FRESHET_INSTANCE"),
		CredentialsFile: cmp.Or(e.Flags.CredentialsFile, e.Getenv("FRESHET_CREDENTIALS_FILE")),
		TokenFile:       cmp.Or(e.Flags.TokenFile, e.Getenv("FRESHET_TOKEN_FILE")),
		InsecureHTTP:    e.Flags.InsecureHTTP,
	}
	if e.Flags.CAFile == "" {
		selection.CAData = e.Getenv("FRESHET_CA_DATA")
	}
	if e.Flags.CredentialsFile != "" || e.Flags.TokenFile != "" {
		return selection
	}
	// The key belongs to the server that the environment names with it. A context that a flag
	// names has its own credential.
	if cmp.Or(selection.CredentialsFile, selection.TokenFile) == "" && e.Flags.Context == "" &&
		e.Getenv("FRESHET_SERVER") != "" {
		selection.APIKey = e.Getenv("FRESHET_API_KEY")
	}
	if cmp.Or(selection.CredentialsFile, selection.TokenFile, selection.APIKey) != "" {
		selection.CredentialServer = e.Getenv("FRESHET_SERVER")
	}
	return selection
}

// Context returns the context that the flags, the environment and the context file choose,
// in this order of precedence.
func (e *Env) Context() (contexts.Context, error) { return contexts.Resolve(e.Selection()) }

// DataDir returns the data directory of a server on this machine, for commands without
// their own flag for it.
func (e *Env) DataDir() string {
	return filepath.Clean(cmp.Or(e.Getenv("FRESHET_DATA_DIR"), config.Default().DataDir))
}

// Style returns the colours of standard output. It has colours only on a terminal, and not
// if NO_COLOR is set.
func (e *Env) Style() output.Style { return output.StyleFor(e.Out, e.Getenv) }

// Progress returns a progress line on standard error, shown only on a terminal.
func (e *Env) Progress() *output.Progress { return output.NewProgress(e.Err, e.Getenv) }

// Printf prints to standard output.
func (e *Env) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(e.Out, format, args...)
	return err
}

// Println prints a line to standard output.
func (e *Env) Println(args ...any) error {
	_, err := fmt.Fprintln(e.Out, args...)
	return err
}

// Notef prints to standard error, for people only.
func (e *Env) Notef(format string, args ...any) error {
	_, err := fmt.Fprintf(e.Err, format, args...)
	return err
}

// List prints a list: value as JSON or YAML, the column Name of the table for -o name, and the table otherwise. If
// the table is empty, it prints none to standard error.
func (e *Env) List(format output.Format, value any, table *output.Table, none string) error {
	switch {
	case format.IsData():
		return output.Value(e.Out, format, value)
	case format == output.FormatName:
		name := slices.IndexFunc(table.Columns, func(c output.Column) bool { return c.Name == "Name" })
		for _, row := range table.Rows {
			if err := e.Println(output.Clean(row[name])); err != nil {
				return err
			}
		}
		return nil
	case len(table.Rows) == 0 && none != "":
		return e.Notef("%s\n", none)
	}
	return table.Write(e.Out)
}

// CompletionScript prints the completion script of a shell. It is the RunE of a command with the argument SHELL.
func (e *Env) CompletionScript(cmd *cobra.Command, args []string) error {
	root := cmd.Root()
	switch args[0] {
	case "bash":
		return root.GenBashCompletionV2(e.Out, true)
	case "zsh":
		return root.GenZshCompletion(e.Out)
	case "fish":
		return root.GenFishCompletion(e.Out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(e.Out)
	}
	return Usagef(cmd, "shell %q is not supported; use bash, zsh, fish or powershell", args[0])
}

// Parent adds subcommands to a command that does nothing else.
func Parent(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = NoArgs, Help
	cmd.AddCommand(commands...)
	return cmd
}

// The sections of the root command's help.
const (
	SectionConnect   = "connect"
	SectionMessages  = "messages"
	SectionResources = "resources"
	SectionServer    = "server"
)

// InSection puts commands into a section of the root command's help.
func InSection(id string, commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	return commands
}

const offline = "freshet/offline"

// Offline marks commands that use no context. They reject the global flags, and their help
// does not list them.
func Offline(commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		if cmd.Annotations == nil {
			cmd.Annotations = map[string]string{}
		}
		cmd.Annotations[offline] = ""
		Offline(cmd.Commands()...)
	}
	return commands
}

// IsOffline reports whether Offline marked the command.
func IsOffline(cmd *cobra.Command) bool {
	_, ok := cmd.Annotations[offline]
	return ok
}

// RejectGlobalFlags returns an error if the command is offline and a global flag is set. The
// command's own flags of the same name are allowed.
func RejectGlobalFlags(cmd *cobra.Command) error {
	if !IsOffline(cmd) {
		return nil
	}
	var err error
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Changed {
			err = Usagef(cmd, "--%s has no effect here: the command uses no context", f.Name)
		}
	})
	return err
}
