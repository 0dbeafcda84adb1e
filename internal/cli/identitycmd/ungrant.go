package identitycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// ungrant has the flags of one ungrant command.
type ungrant struct {
	env      *command.Env
	from, on []string
	all      bool
	dryRun   bool
}

func newUngrant(env *command.Env) *cobra.Command {
	u := ungrant{env: env}
	cmd := &cobra.Command{
		Use:   "ungrant ROLE --from SUBJECT [--on SCOPE]",
		Short: "Revoke a role from accounts and users",
		Long: `Revoke a role that 'freshet grant' has granted, with the same subjects and the same scope:
without --on the role in the whole organization, with --all the role in all scopes. The
role is no longer in force when the command returns. A role binding of other subjects
keeps them; a role binding without subjects is deleted.`,
		Example: `  # grant and revoke a role in the whole organization
  freshet grant org-readonly --to shop && freshet ungrant org-readonly --from shop

  # with the scope of the grant
  freshet grant topic-producer --to shop --on topic=public/default/orders
  freshet ungrant topic-producer --from shop --on topic=public/default/orders

  # in all scopes
  freshet grant topic-consumer --to shop --on tenant=public && freshet ungrant topic-consumer --from shop --all`,
		Args:              command.OneArg("a role"),
		ValidArgsFunction: completeRoles(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(u.from) == 0:
				return command.Usagef(cmd, "--from is missing; name the account or user that has the role")
			case u.all && len(u.on) > 0:
				return command.Usagef(cmd, "--all and --on cannot be combined")
			}
			return u.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&u.from, "from", nil, "`subject` that loses the role: an account, sa/NAME or user/NAME")
	f.StringSliceVar(&u.on, "on", nil, "`scope` of the role (default: the whole organization)")
	f.BoolVar(&u.all, "all", false, "revoke the role in all scopes")
	f.BoolVar(&u.dryRun, "dry-run", false, "show what would be revoked without changing anything")
	completeSubjects(cmd, env, "from")
	return cmd
}

// binding is the part of a RoleBinding that grant writes.
type binding struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		RoleRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"roleRef"`
		Subjects    []map[string]any `json:"subjects"`
		Restriction json.RawMessage  `json:"resourceNameRestriction"`
	} `json:"spec"`
}

func (u *ungrant) run(ctx context.Context, role string) error {
	where, err := parseScope(u.on)
	if err != nil {
		return err
	}
	subjects, err := parseSubjects(u.from)
	if err != nil {
		return err
	}
	r, at, err := u.env.Resources()
	if err != nil {
		return err
	}
	list, err := r.List(ctx, resources.RoleBindings, at.Organization, resources.ListOptions{})
	if err != nil {
		return err
	}
	kind, name := parseRole(role)
	for _, subject := range subjects {
		var matches, others []binding
		for _, o := range list {
			var b binding
			if err := o.Into(&b); err != nil {
				return fmt.Errorf("decoding role binding %s: %w", o.Name(), err)
			}
			switch {
			case b.Spec.RoleRef.Name != name || kind != "" && b.Spec.RoleRef.Kind != kind || !b.has(subject):
			case u.all || b.hasScope(where):
				matches = append(matches, b)
			default:
				others = append(others, b)
			}
		}
		if len(matches) == 0 {
			return notGranted(role, subject, where, others)
		}
		for i := range matches {
			if err := u.revoke(ctx, r, at.Organization, &matches[i], subject); err != nil {
				return err
			}
		}
	}
	return nil
}

// notGranted returns the error for a role that the subject does not have in the scope.
func notGranted(role string, subject map[string]any, where scope, others []binding) error {
	err := errs.Newf(errs.NotFound, "%v does not have role %s on %s", subject["name"], role, where)
	if len(others) == 0 {
		return hint.Add(err, "'freshet get rb' lists the role bindings, 'freshet get roles' and 'freshet get "+
			"clusterroles' the roles.")
	}
	names := make([]string, len(others))
	for i := range others {
		names[i] = others[i].Metadata.Name
	}
	return hint.Add(err, "Role bindings in other scopes are: %s. Use --on with their scope, or --all.",
		strings.Join(names, ", "))
}

func sameSubject(a, b map[string]any) bool { return a["kind"] == b["kind"] && a["name"] == b["name"] }

func (b *binding) has(subject map[string]any) bool {
	return slices.ContainsFunc(b.Spec.Subjects, func(s map[string]any) bool { return sameSubject(s, subject) })
}

// hasScope reports whether the scope of the binding is where.
func (b *binding) hasScope(where scope) bool {
	want, err := json.Marshal(where.restriction())
	if err != nil {
		return false
	}
	got := "null"
	if len(b.Spec.Restriction) > 0 {
		var value any
		if json.Unmarshal(b.Spec.Restriction, &value) != nil {
			return false
		}
		text, err := json.Marshal(value) // sorts the fields, as for want
		if err != nil {
			return false
		}
		got = string(text)
	}
	return got == string(want)
}

// revoke removes a subject from a role binding, and deletes a binding without subjects.
func (u *ungrant) revoke(ctx context.Context, r *resources.Client, organization string, b *binding,
	subject map[string]any,
) error {
	ref := resources.Ref{Kind: resources.RoleBindings, Organization: organization, Name: b.Metadata.Name}
	left := slices.DeleteFunc(slices.Clone(b.Spec.Subjects),
		func(s map[string]any) bool { return sameSubject(s, subject) })
	if len(left) == 0 {
		err := r.Delete(ctx, ref, resources.DeleteOptions{GracePeriod: -1, DryRun: u.dryRun})
		if err != nil {
			return err
		}
	} else if _, err := r.Patch(ctx, ref, map[string]any{"spec": map[string]any{"subjects": left}},
		resources.WriteOptions{FieldManager: fieldManager, DryRun: u.dryRun}); err != nil {
		return err
	}
	suffix := ""
	if u.dryRun {
		suffix = " (dry run)"
	}
	return u.env.Done(command.Result{Kind: "rolebinding", Name: ref.Name, Action: "revoked"},
		"role binding %s: %s revoked from %v%s", ref.Name, b.Spec.RoleRef.Name, subject["name"], suffix)
}
