package authcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
	"freshet/internal/ops/kubeconfig"
)

type kubeconfigCommand struct {
	dataDir, file, name string
	merge, use, static  bool
	format              output.Format
}

func newKubeconfig(env *command.Env) *cobra.Command {
	var k kubeconfigCommand
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Write a kubeconfig for kubectl",
		Long: `Write a kubeconfig for the server of the context, for kubectl and other Kubernetes
clients. The command prints it, or adds it with --merge to the file that kubectl reads.

The kubeconfig contains no token: kubectl gets tokens from 'freshet auth exec', which
renews them. --static-token includes a token, for programs that cannot run another
program, and for other machines; protect such a file like the token. --data-dir uses the
server with its data in that directory instead of the context.`,
		Example: `  # add a context to the file that kubectl reads, and use it
  freshet kubeconfig --merge && kubectl config current-context

  # write a separate file
  freshet kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get mi

  # include a token, for programs that cannot run another program
  freshet kubeconfig --static-token > kubeconfig`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.run(cmd.Context(), env) },
	}
	f := cmd.Flags()
	output.AddFlag(f, &k.format, output.FormatYAML, output.FormatJSON)
	f.StringVar(&k.dataDir, "data-dir", "", "data `directory` of a server on this machine, instead of a context")
	f.BoolVar(&k.merge, "merge", false, "add the entry to the file that kubectl reads instead of printing it")
	f.StringVar(&k.file, "file", "",
		"add the entry to this `file` (default: the first of KUBECONFIG, or ~/.kube/config)")
	f.StringVar(&k.name, "name", "", "`name` of the entry (default: freshet, or freshet- and the context's name)")
	f.BoolVar(&k.use, "use", true, "with --merge, make the entry kubectl's current context")
	f.BoolVar(&k.static, "static-token", false, "include a token instead of the command that gets one")
	return cmd
}

func (k *kubeconfigCommand) run(ctx context.Context, env *command.Env) error {
	if k.dataDir != "" {
		if _, err := contexts.Local(k.dataDir); err != nil {
			return err
		}
	}
	c, err := k.context(env)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(c.Server, "https:") {
		return hint.Add(errs.Newf(errs.Invalid,
			"kubectl sends no credentials over plain HTTP, and the context's server is %s", c.Server),
			"Set its HTTPS address with --server https://HOST:PORT, and --ca-file FILE unless its certificate "+
				"authority is a public one.")
	}
	o := kubeconfig.Options{
		Server: c.Server, CA: []byte(c.CA), Namespace: c.Organization, Name: cmp.Or(k.name, entryName(c)),
	}
	if k.static {
		tokens, err := env.Tokens(c, "")
		if err != nil {
			return err
		}
		token, err := tokens.Token(ctx)
		if err != nil {
			return err
		}
		o.Token = token.Value
	} else if o.Exec, err = k.exec(env, c); err != nil {
		return err
	}
	if k.merge || k.file != "" {
		return k.mergeInto(env, o)
	}
	text, err := kubeconfig.Marshal(o)
	if err != nil {
		return err
	}
	if k.format != output.FormatYAML {
		return output.Document(env.Out, k.format, text)
	}
	_, err = env.Out.Write(text)
	return err
}

// context returns the context in use, or that of --data-dir with the overrides of the flags.
func (k *kubeconfigCommand) context(env *command.Env) (contexts.Context, error) {
	selection := env.Selection()
	if k.dataDir != "" {
		selection.DataDir, selection.Context = k.dataDir, contexts.LocalName
	}
	return contexts.Resolve(selection)
}

func entryName(c contexts.Context) string {
	if c.Name == "" || c.Name == contexts.LocalName {
		return "freshet"
	}
	return "freshet-" + c.Name
}

// exec returns the exec entry with which kubectl runs this program for a token. Its paths
// are absolute, so that kubectl can run it from any directory.
func (k *kubeconfigCommand) exec(env *command.Env, c contexts.Context) (*kubeconfig.Exec, error) {
	program, err := ownProgram()
	if err != nil {
		return nil, err
	}
	e := &kubeconfig.Exec{
		Command: program, Args: []string{"auth", "exec"}, Env: map[string]string{},
		InstallHint: "The program freshet provides the tokens for this server. Install it at the path in this file.",
	}
	selection := env.Selection()
	absolute := func(path string) string {
		if abs, err := filepath.Abs(path); err == nil {
			return abs
		}
		return path
	}
	switch {
	case c.Name == contexts.LocalName:
		e.Env["FRESHET_DATA_DIR"] = absolute(cmp.Or(k.dataDir, selection.DataDir))
		fallthrough
	case c.Name != "":
		e.Args = append(e.Args, "--context", c.Name)
		if env.Getenv("FRESHET_CONFIG") != "" {
			e.Env["FRESHET_CONFIG"] = absolute(selection.File)
		}
	}
	if selection.Server != "" {
		e.Args = append(e.Args, "--server="+selection.Server)
	}
	for _, file := range [][2]string{
		{"--ca-file=", selection.CAFile},
		{"--credentials-file=", selection.CredentialsFile},
		{"--token-file=", selection.TokenFile},
	} {
		if file[1] != "" {
			e.Args = append(e.Args, file[0]+absolute(file[1]))
		}
	}
	return e, nil
}

// ownProgram returns the name of this program if PATH finds it by that name, else its path.
func ownProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the path of this program: %w", err)
	}
	found, err := exec.LookPath(filepath.Base(self))
	if err != nil {
		return self, nil //nolint:nilerr // it is not in PATH
	}
	one, oneErr := os.Stat(self)
	other, otherErr := os.Stat(found)
	if oneErr == nil && otherErr == nil && os.SameFile(one, other) {
		return filepath.Base(self), nil
	}
	return self, nil
}

// mergeInto adds the entry to the file of --file, or to the file that kubectl reads.
func (k *kubeconfigCommand) mergeInto(env *command.Env, o kubeconfig.Options) error {
	path := k.file
	if path == "" {
		path = filepath.Join(env.Getenv("HOME"), ".kube", "config")
		if list := filepath.SplitList(env.Getenv("KUBECONFIG")); len(list) > 0 && list[0] != "" {
			path = list[0]
		}
	}
	existing, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := kubeconfig.Merge(existing, o, k.use)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// Write to the target of a symbolic link instead of replacing the link.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := contexts.WritePrivate(path, text); err != nil {
		return err
	}
	result := command.Result{Kind: "kubeconfig", Name: o.Name, Action: "written", File: path}
	format := k.format
	if format == output.FormatYAML { // the default is the format of a printed kubeconfig
		format = output.FormatText
	}
	return result.Print(env.Out, format, "%s has the context %s: kubectl --context %s get all", path, o.Name, o.Name)
}
