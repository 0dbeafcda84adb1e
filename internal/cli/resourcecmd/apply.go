package resourcecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// fieldManager is the default field manager of applied objects.
const fieldManager = "freshet"

// apply has the connection and the flags of one apply command.
type apply struct {
	*session
	files     []string
	recursive bool
	wait      bool
	timeout   time.Duration
	options   resources.WriteOptions
	format    output.Format
}

func newApply(env *command.Env) *cobra.Command {
	a := apply{options: resources.WriteOptions{FieldManager: fieldManager}}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or update resources from files",
		Long: `Create or update resources from files with server-side apply: missing objects are
created, fields that differ are changed, and fields of other owners are not touched. All
files are read before anything is changed. If an object cannot be applied, the others
still are.`,
		Example: `  # a file, or all files of a folder
  freshet apply -f account.yaml

  # check on the server without changing anything
  freshet apply -f manifests --dry-run

  # from standard input, and wait until it is ready
  printf '{apiVersion: cloud.vendor.io/v1alpha1, kind: ServiceAccount, metadata: {name: web}}' |
    freshet apply -f - --wait`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if len(a.files) == 0 {
				return command.Usagef(cmd, "%w", errNoFiles)
			}
			if a.session, err = connect(cmd.Context(), env); err != nil {
				return err
			}
			all, err := a.manifests(a.files, a.recursive)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), all)
		},
	}
	f := cmd.Flags()
	fileFlags(f, &a.files, &a.recursive)
	dryRunFlag(f, &a.options.DryRun)
	f.BoolVar(&a.options.Force, "force-conflicts", false, "take over fields that another field manager owns")
	f.StringVar(&a.options.FieldManager, "field-manager", fieldManager,
		"`name` of the field manager that owns the applied fields")
	f.BoolVar(&a.wait, "wait", false, "wait until the objects are ready")
	f.DurationVar(&a.timeout, "timeout", time.Minute, "timeout of --wait")
	output.AddFlag(f, &a.format, output.FormatName, output.FormatJSON, output.FormatYAML)
	return cmd
}

func fileFlags(f *pflag.FlagSet, files *[]string, recursive *bool) {
	f.StringSliceVarP(files, "filename", "f", nil,
		"`file`, folder, or - for standard input; may be repeated")
	f.BoolVarP(recursive, "recursive", "R", false, "read the subfolders of a folder too")
}

// dryRunFlag adds --dry-run with the values of kubectl: --dry-run=server.
func dryRunFlag(f *pflag.FlagSet, dryRun *bool) {
	f.Var((*dryRunValue)(dryRun), "dry-run", "check the request on the server without changing anything")
	f.Lookup("dry-run").NoOptDefVal = "server"
}

type dryRunValue bool

func (v *dryRunValue) String() string {
	if *v {
		return "server"
	}
	return "none"
}

func (v *dryRunValue) Type() string { return "mode" }

func (v *dryRunValue) Set(text string) error {
	switch text {
	case "server", "true":
		*v = true
	case "none", "false":
		*v = false
	default:
		return errors.New("use none or server")
	}
	return nil
}

func (a *apply) run(ctx context.Context, all []manifest) error {
	var applied []resources.Ref
	err := each(all, func(m manifest) error {
		object, verb, err := a.apply(ctx, m)
		if err != nil {
			return explainConflict(fmt.Errorf("%s: %s: %w", m.from, m.ref, err))
		}
		m.ref.Name = object.Name() // the server generates it if the manifest has only generateName
		applied = append(applied, m.ref)
		if a.format != output.FormatName {
			return output.Value(a.env.Out, a.format, object)
		}
		suffix := ""
		if a.options.DryRun {
			suffix = " (dry run)"
		}
		return a.env.Printf("%s %s%s\n", a.nameOf(object), verb, suffix)
	})
	if err != nil || !a.wait || a.options.DryRun {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return each(applied, func(ref resources.Ref) error {
		condition := readyCondition(ref.Kind)
		if condition == "" {
			return nil
		}
		return a.waitFor(ctx, ref, conditionIs(condition, "True"))
	})
}

// readyCondition returns the condition that is True when an object of a kind is ready, and "" for kinds whose objects
// are ready when they are written.
func readyCondition(kind resources.Kind) string {
	switch kind.Resource {
	case resources.APIKeys.Resource:
		return "Issued"
	case resources.Organizations.Resource, "clusterroles", "pools", "poolmembers":
		return ""
	}
	return "Ready"
}

// apply applies an object and returns what it did: created, configured or unchanged.
func (a *apply) apply(ctx context.Context, m manifest) (resources.Object, string, error) {
	if m.ref.Name == "" {
		object, err := a.Create(ctx, m.ref.Kind, m.ref.Organization, m.object, a.options)
		return object, "created", err
	}
	before, err := a.Get(ctx, m.ref)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return nil, "", err
	}
	if !m.ref.Kind.Can("patch") { // organizations have nothing to change
		if before != nil {
			return before, "unchanged", nil
		}
		object, err := a.Create(ctx, m.ref.Kind, m.ref.Organization, m.object, a.options)
		return object, "created", err
	}
	after, err := a.Apply(ctx, m.ref, m.object, a.options)
	switch {
	case err != nil:
		return nil, "", err
	case before == nil:
		return after, "created", nil
	case normalizedYAML(before) == normalizedYAML(after):
		return after, "unchanged", nil
	}
	return after, "configured", nil
}

func explainConflict(err error) error {
	if refused, ok := errors.AsType[*client.Error](err); ok && errors.Is(err, client.ErrConflict) &&
		refused.Reason == "Conflict" {
		return hint.Add(err, "Remove the field from the file, or take it over with --force-conflicts.")
	}
	return err
}
