// Package command is what every command of the command line gets: the process's
// streams and environment, the flags that choose a server and who asks, the
// client that follows from them, and the words for a wrong command line. It knows
// no command; each family of commands is a package beside it that takes an Env.
package command

import (
	"cmp"
	"io"
	"path/filepath"

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

// Env is what a command works with.
type Env struct {
	Streams
	// Getenv looks up an environment variable.
	Getenv func(string) string
	// Flags are those that every command takes.
	Flags Flags
}

// Flags choose a server, and who asks it. Each has a variable FRESHET_… that it
// wins over.
type Flags struct {
	Context, Server, CAFile    string
	Organization, Cluster      string
	CredentialsFile, TokenFile string
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
	flagNamespace    = "namespace" // what kubectl calls an organization
)

// AddFlags gives the root command the flags that choose a connection.
func (e *Env) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&e.Flags.Context, flagContext, "", "the `context` to use (FRESHET_CONTEXT)")
	f.StringVar(&e.Flags.Server, flagServer, "", "base `URL` of the server (FRESHET_SERVER)")
	f.StringVar(&e.Flags.CAFile, flagCAFile, "", "certificate authority to trust (PEM `file`, FRESHET_CA_FILE)")
	f.StringVarP(&e.Flags.Organization, flagOrganization, "n", "",
		"the `organization`, which kubectl calls namespace (FRESHET_ORGANIZATION)")
	f.StringVar(&e.Flags.Cluster, flagCluster, "", "the `cluster` for messages and schemas (FRESHET_CLUSTER)")
	f.StringVar(&e.Flags.CredentialsFile, flagCredentials, "",
		"credentials `file` of a service account (FRESHET_CREDENTIALS_FILE)")
	f.StringVar(&e.Flags.TokenFile, flagToken, "", "`file` with an API key or token (FRESHET_TOKEN_FILE)")
	f.StringVar(&e.Flags.Organization, flagNamespace, "", "")
	_ = f.MarkHidden(flagNamespace) // it exists
}

// Selection is what flags and environment say about the connection.
func (e *Env) Selection() contexts.Selection {
	return contexts.Selection{
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
	}
}

// Context is the connection that the command line, the environment and the file of
// contexts choose, in this order.
func (e *Env) Context() (contexts.Context, error) {
	return contexts.Resolve(e.Selection())
}

// DataDir is the data directory of a server on this machine, unless a command has
// a flag of its own for it.
func (e *Env) DataDir() string {
	return filepath.Clean(cmp.Or(e.Getenv("FRESHET_DATA_DIR"), config.Default().DataDir))
}

// Style is how standard output is coloured: on a terminal, unless NO_COLOR asks
// for none.
func (e *Env) Style() output.Style { return output.StyleFor(e.Out, e.Getenv) }

// Progress is a line about how it goes, on standard error when that is a terminal.
func (e *Env) Progress() *output.Progress { return output.NewProgress(e.Err, e.Getenv) }

// The groups that the root's help is divided into.
const (
	GroupConnect   = "connect"
	GroupMessages  = "messages"
	GroupResources = "resources"
	GroupServer    = "server"
)

// InGroup puts commands into a group of the root's help.
func InGroup(id string, commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	return commands
}

const offline = "freshet/offline"

// Offline marks commands that ask no server through a context: the flags that
// choose one are refused there, and not in their help.
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

// IsOffline says whether a command was marked by Offline.
func IsOffline(cmd *cobra.Command) bool {
	_, ok := cmd.Annotations[offline]
	return ok
}

// RefuseConnection is the error of a command that was given flags which choose a
// connection and has none. Flags of its own with the same names are its own.
func RefuseConnection(cmd *cobra.Command) error {
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
