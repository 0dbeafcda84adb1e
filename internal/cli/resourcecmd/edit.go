package resourcecmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// editFieldManager owns the fields that edit changes.
const editFieldManager = "freshet-edit"

func newEdit(env *command.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "edit KIND NAME | KIND/NAME",
		Short: "Change a resource in an editor",
		Long: `Change a resource in an editor: the program of FRESHET_EDITOR, else of VISUAL, else of
EDITOR, else vi. The command sends the fields that you have changed, and nothing if you
have changed nothing. It does not overwrite a change that somebody else has made in the
meantime. If the server rejects the change, the command keeps your file and prints its
path.`,
		Example: `  # a cluster, in your editor
  freshet edit mc default

  # in another editor, which must wait until the file is closed
  EDITOR='code --wait' freshet edit mc/default

  # without a terminal
  EDITOR='sed -i s/replicas:.*/replicas:\ 2/' freshet edit mc/default`,
		ValidArgsFunction: complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := connect(cmd.Context(), env)
			if err != nil {
				return err
			}
			what, err := s.selection(cmd, args)
			if err != nil {
				return err
			}
			if len(what.refs) != 1 {
				return command.Usagef(cmd, "argument is missing or too many: name one object, KIND NAME or KIND/NAME")
			}
			return s.edit(cmd.Context(), what.refs[0])
		},
	}
}

func (s *session) edit(ctx context.Context, ref resources.Ref) error {
	object, err := s.getNamed(ctx, ref)
	if err != nil {
		return err
	}
	before, err := editableYAML(object)
	if err != nil {
		return err
	}
	file, after, err := s.runEditor(ctx, ref, before)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) {
		err := s.env.Done(command.Result{Kind: ref.Kind.Resource, Name: ref.String(), Action: "unchanged"},
			"%s unchanged", ref)
		return errors.Join(err, os.Remove(file))
	}
	if err := s.sendEdit(ctx, ref, object.Text("metadata", "resourceVersion"), before, after); err != nil {
		return hint.Add(err, "Your version of the object is in %s.", file)
	}
	err = s.env.Done(command.Result{Kind: ref.Kind.Resource, Name: ref.String(), Action: "edited"}, "%s edited", ref)
	return errors.Join(err, os.Remove(file))
}

// editableYAML returns an object as YAML, without the fields that only the server sets.
func editableYAML(object resources.Object) ([]byte, error) {
	var o resources.Object
	if err := object.Into(&o); err != nil {
		return nil, err
	}
	if metadata, ok := o.Field("metadata").(map[string]any); ok {
		for _, name := range []string{
			"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "finalizers",
			"ownerReferences",
		} {
			delete(metadata, name)
		}
	}
	delete(o, "status")
	return yaml.Marshal(o)
}

// runEditor lets the user edit a text in a file, and returns the file and its new content.
func (s *session) runEditor(ctx context.Context, ref resources.Ref,
	text []byte,
) (path string, after []byte, err error) {
	file, err := os.CreateTemp("", "freshet-edit-"+filepath.Base(ref.Name)+"-*.yaml")
	if err != nil {
		return "", nil, err
	}
	if _, err := file.Write(text); err != nil {
		return "", nil, errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return "", nil, err
	}
	editor := cmp.Or(s.env.Getenv("FRESHET_EDITOR"), s.env.Getenv("VISUAL"), s.env.Getenv("EDITOR"), "vi")
	// The variable may have arguments, as in EDITOR="code --wait".
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", file.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.env.In, s.env.Out, s.env.Err
	if err := cmd.Run(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("running the editor %q: %w", editor, err), os.Remove(file.Name()))
	}
	after, err = os.ReadFile(file.Name())
	return file.Name(), after, err
}

// sendEdit sends the changes between two texts of an object.
func (s *session) sendEdit(ctx context.Context, ref resources.Ref, version string, before, after []byte) error {
	var from, to map[string]any
	if err := yaml.Unmarshal(before, &from); err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(after, &to); err != nil {
		return errs.Newf(errs.Invalid, "not YAML: %w", err)
	}
	if edited := resources.Object(to); edited.Name() != ref.Name || edited.Kind() != ref.Kind.Kind {
		return errs.New(errs.Invalid, "kind and name of an object cannot be changed")
	}
	changes := mergePatch(from, to)
	metadata, ok := changes["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		changes["metadata"] = metadata
	}
	metadata["resourceVersion"] = version // rejects the change if the object has changed
	_, err := s.Patch(ctx, ref, changes, resources.WriteOptions{FieldManager: editFieldManager})
	if errors.Is(err, client.ErrConflict) {
		return errs.Newf(errs.Conflict, "%s has changed in the meantime; edit it again", ref)
	}
	return err
}

// mergePatch returns the JSON merge patch (RFC 7396) from one object to another.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, ok := to[name]; !ok {
			patch[name] = nil
		}
	}
	for name, value := range to {
		old, existed := from[name]
		oldFields, oldOK := old.(map[string]any)
		fields, ok := value.(map[string]any)
		switch {
		case existed && sameYAML(old, value):
		case oldOK && ok:
			patch[name] = mergePatch(oldFields, fields)
		default:
			patch[name] = value
		}
	}
	return patch
}

func sameYAML(a, b any) bool {
	one, err := yaml.Marshal(a)
	other, otherErr := yaml.Marshal(b)
	return err == nil && otherErr == nil && strings.TrimSpace(string(one)) == strings.TrimSpace(string(other))
}
