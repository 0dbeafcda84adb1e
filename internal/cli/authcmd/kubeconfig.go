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
	"freshet/internal/ops/kubeconfig"
)

type kubeconfigRun struct {
	dataDir, file, name string
	merge, use, static  bool
}

func newKubeconfig(env *command.Env) *cobra.Command {
	var k kubeconfigRun
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Give kubectl a way to the server",
		Long: `Give kubectl, and everything else that reads a kubeconfig, a way to the server of the
context. It is printed, or with --merge put into the file that kubectl reads, beside
what is there.

No token stands in it: kubectl runs 'freshet auth exec' for one, which renews it by
itself. --static-token puts one in for programs that cannot do so, or for another
machine; keep such a file as secret as the token. --data-dir means the server that
keeps its data there, whatever the context.`,
		Example: `  # add a context to the file that kubectl reads, and use it
  freshet kubeconfig --merge && kubectl config current-context

  # a file of its own
  freshet kubeconfig > kubeconfig && kubectl --kubeconfig kubeconfig get mi

  # with the token inside, for a program that runs no other
  freshet kubeconfig --static-token > kubeconfig`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return k.run(cmd.Context(), env) },
	}
	f := cmd.Flags()
	f.StringVar(&k.dataDir, "data-dir", "", "data `directory` of a server on this machine, in place of a context")
	f.BoolVar(&k.merge, "merge", false, "put it into the file that kubectl reads, in place of printing it")
	f.StringVar(&k.file, "file", "", "merge into this `file` (default: the first of KUBECONFIG, or ~/.kube/config)")
	f.StringVar(&k.name, "name", "", "`name` of the entry (default: freshet, or freshet- and the context's)")
	f.BoolVar(&k.use, "use", true, "with --merge, make it kubectl's current context")
	f.BoolVar(&k.static, "static-token", false, "put a token in, in place of the way to get one")
	return cmd
}

func (k *kubeconfigRun) run(ctx context.Context, env *command.Env) error {
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
			"Name its HTTPS address: --server https://HOST:PORT, and --ca-file FILE when its certificate authority is not a public one.")
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
	_, err = env.Out.Write(text)
	return err
}

// context is the chosen one, or that of a data directory with the flags laid over
// it.
func (k *kubeconfigRun) context(env *command.Env) (contexts.Context, error) {
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

// exec is how kubectl runs this program for a token, from any directory.
func (k *kubeconfigRun) exec(env *command.Env, c contexts.Context) (*kubeconfig.Exec, error) {
	program, err := ownProgram()
	if err != nil {
		return nil, err
	}
	e := &kubeconfig.Exec{
		Command: program, Args: []string{"auth", "exec"}, Env: map[string]string{},
		InstallHint: "The program freshet hands out the tokens for this server. Put it where this file says.",
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

// ownProgram is this program by its name where that finds it, else by its path.
func ownProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the path of this program: %w", err)
	}
	found, err := exec.LookPath(filepath.Base(self))
	if err != nil {
		return self, nil //nolint:nilerr // then its path it is
	}
	one, oneErr := os.Stat(self)
	other, otherErr := os.Stat(found)
	if oneErr == nil && otherErr == nil && os.SameFile(one, other) {
		return filepath.Base(self), nil
	}
	return self, nil
}

// mergeInto changes the file that kubectl reads.
func (k *kubeconfigRun) mergeInto(env *command.Env, o kubeconfig.Options) error {
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
	// A file that is linked to stays where it is.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := contexts.WritePrivate(path, text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Out, "%s has the context %s: kubectl --context %s get all\n", path, o.Name, o.Name)
	return err
}
