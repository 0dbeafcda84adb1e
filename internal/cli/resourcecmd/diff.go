package resourcecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/output"
)

// diff has the connection and the flags of one diff command.
type diff struct {
	*session
	files     []string
	recursive bool
	format    output.Format
	options   resources.WriteOptions
}

// change is an object that apply would change, in the form of -o json.
type change struct {
	Name    string `json:"name"`
	Current string `json:"current"` // as YAML, "" if it does not exist
	Applied string `json:"applied"`
}

func newDiff(env *command.Env) *cobra.Command {
	d := diff{options: resources.WriteOptions{FieldManager: fieldManager, DryRun: true, Force: true}}
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Show what apply would change",
		Long: `Show what apply would change, with a dry run on the server. The exit code is 0 if nothing
would change, and 1 if something would.`,
		Example: `  # show the changes of a file
  freshet diff -f account.yaml || true

  # no difference after it is applied
  freshet apply -f account.yaml && freshet diff -f account.yaml

  # in a pipeline: apply only if something changes
  freshet diff -f manifests > changes.txt || freshet apply -f manifests`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if len(d.files) == 0 {
				return command.Usagef(cmd, "%w", errNoFiles)
			}
			if d.session, err = connect(cmd.Context(), env); err != nil {
				return err
			}
			all, err := d.manifests(d.files, d.recursive)
			if err != nil {
				return err
			}
			return d.run(cmd.Context(), all)
		},
	}
	fileFlags(cmd.Flags(), &d.files, &d.recursive)
	output.AddFlag(cmd.Flags(), &d.format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

func (d *diff) run(ctx context.Context, all []manifest) error {
	changes := []change{}
	err := each(all, func(m manifest) error {
		before, after, err := d.currentAndApplied(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", m.from, m.ref, err)
		}
		if before == after {
			return nil
		}
		changes = append(changes, change{m.ref.String(), before, after})
		if d.format.IsData() {
			return nil
		}
		return output.Diff(d.env.Out, d.env.Style(), m.ref.String()+" (current)", m.ref.String()+" (applied)",
			before, after)
	})
	if err == nil && d.format.IsData() {
		err = output.Value(d.env.Out, d.format, changes)
	}
	if err == nil && len(changes) > 0 {
		return command.ExitSilently(1)
	}
	return err
}

// currentAndApplied returns the text of the current object and of the object after apply.
func (d *diff) currentAndApplied(ctx context.Context, m manifest) (before, after string, err error) {
	var current, applied resources.Object
	if m.ref.Name != "" {
		if current, err = d.Get(ctx, m.ref); err != nil && !errors.Is(err, client.ErrNotFound) {
			return "", "", err
		}
	}
	switch {
	case current != nil && !m.ref.Kind.Can("patch"):
		applied = current
	case m.ref.Name == "" || !m.ref.Kind.Can("patch"):
		applied, err = d.Create(ctx, m.ref.Kind, m.ref.Organization, m.object, d.options)
	default:
		applied, err = d.Apply(ctx, m.ref, m.object, d.options)
	}
	if err != nil {
		return "", "", err
	}
	return normalizedYAML(current), normalizedYAML(applied), nil
}

// normalizedYAML returns an object as YAML, without its status and the metadata that the server sets.
func normalizedYAML(object resources.Object) string {
	var o resources.Object
	if object == nil || object.Into(&o) != nil {
		return ""
	}
	if metadata, ok := o.Field("metadata").(map[string]any); ok {
		for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
			delete(metadata, name)
		}
	}
	delete(o, "status")
	text, err := yaml.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(string(text), "\n") + "\n"
}
