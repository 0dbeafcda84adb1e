package identitycmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// The kinds of roles, predefined and an organization's own, and of users.
var (
	clusterRoles = resources.Kind{
		Group: resources.Group, Version: resources.Version, Resource: "clusterroles",
		Kind: "ClusterRole",
	}
	organizationRoles = resources.Kind{
		Group: resources.Group, Version: resources.Version, Resource: "roles", Kind: "Role",
		Namespaced: true,
	}
	users = resources.Kind{
		Group: resources.Group, Version: resources.Version, Resource: "users", Kind: "User",
		Namespaced: true,
	}
)

// grant has the flags of one grant command.
type grant struct {
	env     *command.Env
	to, on  []string
	name    string
	early   bool // allow subjects that do not exist
	options resources.WriteOptions
}

func newGrant(env *command.Env) *cobra.Command {
	g := grant{env: env, options: resources.WriteOptions{FieldManager: fieldManager, Force: true}}
	cmd := &cobra.Command{
		Use:   "grant ROLE --to SUBJECT [--on SCOPE]",
		Short: "Grant a role to accounts and users",
		Long: `Grant a role to accounts and users, in the whole organization or in the scope of --on.
'freshet get clusterroles' lists the predefined roles, 'freshet get roles' the roles of
the organization. If a role of the organization has the name of a predefined one, write
role/NAME or clusterrole/NAME. The role is in force when the command returns. Repeating the command
changes nothing. 'freshet ungrant' revokes the role.

  --to   name of a service account, sa/NAME or user/NAME; may be repeated
  --on   instance=, cluster=, tenant=, namespace=, topic=, subscription=, subject=,
         account= or key= and a name, or a prefix and *; several with commas. A topic
         can be written with its tenant and namespace: topic=public/default/orders`,
		Example: `  # produce to one topic
  freshet grant topic-producer --to shop --on topic=public/default/orders

  # consume from topics that begin with orders-, on one instance
  freshet grant topic-consumer --to sa/shop --on instance=default,topic=public/default/orders-*

  # read everything in the organization
  freshet grant org-readonly --to shop

  # revoke it
  freshet ungrant org-readonly --from shop`,
		Args:              command.OneArg("a role"),
		ValidArgsFunction: completeRoles(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(g.to) == 0 {
				return command.Usagef(cmd, "--to is missing; name the account or user that gets the role")
			}
			return g.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&g.to, "to", nil, "`subject` that gets the role: an account, sa/NAME or user/NAME")
	f.StringSliceVar(&g.on, "on", nil, "`scope` of the role (default: the whole organization)")
	f.StringVar(&g.name, "name", "", "`name` of the role binding (default: derived from role, subject and scope)")
	completeSubjects(cmd, env, "to")
	f.BoolVar(&g.early, "allow-missing", false, "grant the role also to an account or a user that does not exist yet")
	f.BoolVar(&g.options.DryRun, "dry-run", false, "check the request on the server without changing anything")
	return cmd
}

func (g *grant) run(ctx context.Context, role string) error {
	where, err := parseScope(g.on)
	if err != nil {
		return err
	}
	subjects, err := parseSubjects(g.to)
	if err != nil {
		return err
	}
	r, at, err := g.env.Resources()
	if err != nil {
		return err
	}
	kind, name, err := findRole(ctx, r, at.Organization, role)
	if err != nil {
		return err
	}
	if err := g.requireSubjects(ctx, r, at.Organization, subjects); err != nil {
		return err
	}
	spec := map[string]any{
		"roleRef":  map[string]any{"apiGroup": resources.Group, "kind": kind, "name": name},
		"subjects": subjects,
	}
	if restriction := where.restriction(); restriction != nil {
		spec["resourceNameRestriction"] = restriction
	}
	if g.name == "" {
		g.name = bindingName(role, subjects, where)
	}
	ref := resources.Ref{Kind: resources.RoleBindings, Organization: at.Organization, Name: g.name}
	binding, err := r.Apply(ctx, ref, map[string]any{
		"apiVersion": resources.RoleBindings.APIVersion(), "kind": "RoleBinding",
		"metadata": map[string]any{"name": g.name, "namespace": at.Organization}, "spec": spec,
	}, g.options)
	if err != nil {
		return err
	}
	suffix := ""
	if g.options.DryRun {
		suffix = " (dry run)"
	} else if c := binding.Condition("Ready"); c.Status == "False" {
		return fmt.Errorf("role binding %s is not in force: %s %s", g.name, c.Reason, c.Message)
	}
	return g.env.Done(command.Result{Kind: "rolebinding", Name: g.name, Action: "granted"},
		"role binding %s: %s to %s on %s%s", g.name, role, strings.Join(g.to, ", "), where, suffix)
}

// parseSubjects parses the values of --to.
func parseSubjects(words []string) ([]map[string]any, error) {
	kinds := map[string]string{
		"sa": "ServiceAccount", "serviceaccount": "ServiceAccount", "user": "User", "usr": "User", "users": "User",
		"serviceaccounts": "ServiceAccount",
	}
	var subjects []map[string]any
	for _, text := range words {
		word, name, ok := strings.Cut(text, "/")
		if !ok {
			word, name = "sa", text
		}
		kind := kinds[strings.ToLower(word)]
		if kind == "" || name == "" {
			return nil, hint.Add(errs.Newf(errs.Invalid, "--to value %q is not valid", text),
				"Use the name of a service account, sa/NAME or user/NAME.")
		}
		subjects = append(subjects, map[string]any{"apiGroup": resources.Group, "kind": kind, "name": name})
	}
	return subjects, nil
}

// requireSubjects returns an error if a subject does not exist, because its name may be a typo,
// and any account that gets the name later would have the role. --allow-missing makes it a
// warning.
func (g *grant) requireSubjects(ctx context.Context, r *resources.Client, organization string,
	subjects []map[string]any,
) error {
	for _, s := range subjects {
		kind, list := resources.ServiceAccounts, "freshet sa list"
		if s["kind"] == "User" {
			kind, list = users, "freshet user list"
		}
		ref := resources.Ref{Kind: kind, Organization: organization, Name: fmt.Sprint(s["name"])}
		_, err := r.Get(ctx, ref)
		switch {
		case !errors.Is(err, client.ErrNotFound):
			// It exists, or the caller may not read it.
		case !g.early:
			return hint.Add(errs.Newf(errs.NotFound, "%s does not exist in organization %s", ref, organization),
				"'%s' lists those that exist; --allow-missing grants the role before it is created.", list)
		default:
			if _, err := fmt.Fprintf(g.env.Err, "Warning: %s does not exist in organization %s; the role will apply "+
				"to any account that gets this name later.\n", ref, organization); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseRole splits role/NAME and clusterrole/NAME. kind is "" for a name alone.
func parseRole(role string) (kind, name string) {
	word, name, ok := strings.Cut(role, "/")
	for _, k := range []resources.Kind{clusterRoles, organizationRoles} {
		if ok && strings.EqualFold(word, k.Kind) {
			return k.Kind, name
		}
	}
	return "", role
}

// findRole returns the kind and name of a role: ClusterRole if it is predefined, Role if the organization
// defined it. A name that both have is an error, because the caller may mean either.
func findRole(ctx context.Context, r *resources.Client, organization, role string) (kind, name string, err error) {
	wanted, name := parseRole(role)
	var found []string
	for _, kind := range []resources.Kind{clusterRoles, organizationRoles} {
		if wanted != "" && wanted != kind.Kind {
			continue
		}
		ref := resources.Ref{Kind: kind, Name: name}
		if kind.Namespaced {
			ref.Organization = organization
		}
		_, err := r.Get(ctx, ref)
		switch {
		case err == nil:
			found = append(found, kind.Kind)
		case errors.Is(err, client.ErrNotFound):
		case len(found) > 0 && errors.Is(err, client.ErrDenied):
			// The caller cannot see own roles, and means the predefined one.
		default:
			return "", "", err
		}
	}
	switch len(found) {
	case 1:
		return found[0], name, nil
	case 0:
		return "", "", hint.Add(errs.Newf(errs.NotFound, "role %q does not exist: it is neither predefined nor a "+
			"role of organization %s", role, organization),
			"List the roles with 'freshet get clusterroles' and 'freshet get roles'.")
	}
	return "", "", hint.Add(errs.Newf(errs.Invalid, "role %q is ambiguous: it is a predefined role and a role of "+
		"organization %s", role, organization), "Use clusterrole/%[1]s for the predefined role, or role/%[1]s.", name)
}

var notInName = regexp.MustCompile(`[^a-z0-9.-]+`)

// bindingName derives the name of a binding from role, subjects and scope. It is
// deterministic, so that repeating a grant changes nothing.
func bindingName(role string, subjects []map[string]any, where scope) string {
	name := role
	for _, s := range subjects {
		name += "." + fmt.Sprint(s["name"])
	}
	clean := strings.Trim(notInName.ReplaceAllString(strings.ToLower(name), "-"), "-.")
	const most = 200
	if len(where) == 0 && clean == name && len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name + "\x00" + where.String()))
	return strings.Trim(clean[:min(len(clean), most)], "-.") + "." + hex.EncodeToString(sum[:4])
}
