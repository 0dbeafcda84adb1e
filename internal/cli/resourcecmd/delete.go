package resourcecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// deletion has the connection and the flags of one delete command.
type deletion struct {
	*session
	files              []string
	recursive          bool
	all, ignoreMissing bool
	selector, cascade  string
	wait               bool
	timeout            time.Duration
	options            resources.DeleteOptions
}

func newDelete(env *command.Env) *cobra.Command {
	d := deletion{options: resources.DeleteOptions{GracePeriod: -1}}
	cmd := &cobra.Command{
		Use:   "delete KIND NAME... | KIND/NAME... | -f FILE",
		Short: "Delete resources",
		Long: `Delete resources, and wait until they are deleted, including the data of a cluster or an
account. To delete an instance that has clusters, use --cascade foreground, which also
deletes the clusters and all their messages. The server does not delete objects with the
annotation cloud.vendor.io/destroy-protected.`,
		Example: `  # delete a key
  freshet delete ak old-key

  # an instance with its clusters and all their messages
  freshet delete mi/trial --cascade foreground

  # the objects in files
  freshet delete -f account.yaml --ignore-not-found`,
		ValidArgsFunction: complete(env),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if (len(args) > 0) == (len(d.files) > 0) {
				return command.Usagef(cmd, "set either KIND NAME, KIND/NAME, or -f FILE")
			}
			policies := map[string]string{
				"": "", "background": "Background", "foreground": "Foreground",
				"orphan": "Orphan",
			}
			policy, ok := policies[strings.ToLower(d.cascade)]
			if !ok {
				return command.Usagef(cmd, "--cascade takes background, foreground or orphan, not %q", d.cascade)
			}
			d.options.Cascade = policy
			if d.session, err = connect(cmd.Context(), env); err != nil {
				return err
			}
			refs, err := d.targets(cmd, args)
			if err != nil {
				return err
			}
			return d.run(cmd.Context(), refs)
		},
	}
	f := cmd.Flags()
	fileFlags(f, &d.files, &d.recursive)
	dryRunFlag(f, &d.options.DryRun)
	f.BoolVar(&d.all, "all", false, "delete all objects of the kind in the organization")
	f.StringVarP(&d.selector, "selector", "l", "", "delete the objects with these `labels`, such as team=web")
	f.StringVar(&d.cascade, "cascade", "", "deletion `policy` for dependent objects: background, foreground or orphan")
	f.IntVar(&d.options.GracePeriod, "grace-period", -1, "grace period in `seconds`; -1 uses the server default")
	f.BoolVar(&d.ignoreMissing, "ignore-not-found", false, "ignore objects that do not exist")
	f.BoolVar(&d.wait, "wait", true, "wait until the objects are deleted")
	f.DurationVar(&d.timeout, "timeout", 2*time.Minute, "timeout of the command")
	return cmd
}

// targets returns the objects that the command line selects.
func (d *deletion) targets(cmd *cobra.Command, args []string) ([]resources.Ref, error) {
	var refs []resources.Ref
	if len(d.files) > 0 {
		all, err := d.manifests(d.files, d.recursive)
		for _, m := range all {
			refs = append(refs, m.ref)
		}
		return refs, err
	}
	what, err := d.selection(cmd, args)
	if err != nil {
		return nil, err
	}
	switch {
	case len(what.refs) > 0 && (d.all || d.selector != ""):
		return nil, command.Usagef(cmd, "names cannot be combined with --all or -l")
	case len(what.refs) > 0:
		return what.refs, nil
	case !d.all && d.selector == "":
		return nil, command.Usagef(cmd, "names are missing; name the objects, or use --all or -l LABELS")
	}
	err = each(what.kinds, func(kind resources.Kind) error {
		objects, err := d.List(cmd.Context(), kind, d.ref(kind, "").Organization,
			resources.ListOptions{LabelSelector: d.selector})
		for _, o := range objects {
			refs = append(refs, d.ref(kind, o.Name()))
		}
		return err
	})
	return refs, err
}

func (d *deletion) run(ctx context.Context, refs []resources.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return each(refs, func(ref resources.Ref) error {
		err := d.Delete(ctx, ref, d.options)
		switch {
		case errors.Is(err, client.ErrNotFound) && d.ignoreMissing:
			return nil
		case errors.Is(err, client.ErrNotFound):
			return d.explainMissing(err, ref)
		case errors.Is(err, client.ErrConflict):
			return hint.Add(fmt.Errorf("%s: %w", ref, err),
				"--cascade foreground deletes an instance with its clusters; protected objects have the annotation "+
					"cloud.vendor.io/destroy-protected.")
		case err != nil:
			return err
		}
		suffix := ""
		switch {
		case d.options.DryRun:
			suffix = " (dry run)"
		case d.wait:
			if err := d.waitFor(ctx, ref, deleted); err != nil {
				return err
			}
		}
		return d.env.Done(command.Result{Kind: ref.Kind.Resource, Name: ref.String(), Action: "deleted"},
			"%s deleted%s", ref, suffix)
	})
}
