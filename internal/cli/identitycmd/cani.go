package identitycmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// verbs are the verbs of the resource API.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// exitNo is the exit code for "no", the same as for a denied request.
const exitNo = 4

func newCanI(env *command.Env) *cobra.Command {
	var on []string
	var list, quiet bool
	var format output.Format
	cmd := &cobra.Command{
		Use:   "can-i VERB KIND[/NAME] | PERMISSION | --list",
		Short: "Check your permissions",
		Long: `Check whether you may do a verb on a kind of resource (get, list, watch, create, update,
patch, delete), or have a permission such as messaging.topics.produce. --on limits the
check to a scope, with the syntax of 'freshet grant'; without it, the check is whether you
have the permission anywhere in the organization.

The command prints yes or no; the exit code is 0 for yes and 4 for no.`,
		Example: `  # a resource
  freshet can-i delete messagingclusters/default

  # messages
  freshet can-i messaging.topics.produce --on topic=public/default/orders

  # all permissions
  freshet can-i --list`,
		Args: command.MaxArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if list != (len(args) == 0) {
				return command.Usagef(cmd, "argument is missing: a verb and a kind, a permission, or --list")
			}
			r, at, err := env.Resources()
			if err != nil {
				return err
			}
			check := permissionCheck{env: env, Client: r, organization: at.Organization}
			if list {
				return check.list(cmd.Context(), format)
			}
			where, err := parseScope(on)
			if err != nil {
				return err
			}
			var result string
			var yes bool
			if len(args) == 2 {
				yes, result, err = check.verb(cmd.Context(), args[0], args[1])
			} else {
				yes, result, err = check.permission(cmd.Context(), args[0], where)
			}
			if err != nil {
				return err
			}
			switch {
			case format.IsData():
				if err := output.Value(env.Out, format, permissionResult{yes, result}); err != nil {
					return err
				}
			case !quiet:
				if _, err := fmt.Fprintln(env.Out, result); err != nil {
					return err
				}
			}
			if !yes {
				return command.ExitSilently(exitNo)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&list, "list", false, "list all your permissions with their scopes")
	f.BoolVarP(&quiet, "quiet", "q", false, "print nothing; use the exit code")
	f.StringSliceVar(&on, "on", nil, "`scope` of the check, as for 'freshet grant'")
	output.AddFlag(f, &format, output.FormatText, output.FormatJSON, output.FormatYAML)
	return cmd
}

// permissionResult is the result of a check.
type permissionResult struct {
	Allowed bool   `json:"allowed"`
	Text    string `json:"text"`
}

// permissionCheck is the state of one can-i command.
type permissionCheck struct {
	*resources.Client
	env          *command.Env
	organization string
}

// verb checks a verb on a kind of resource.
func (a permissionCheck) verb(ctx context.Context, verb, what string) (yes bool, result string, err error) {
	word, name, _ := strings.Cut(what, "/")
	kinds, err := a.Kinds(ctx)
	if err != nil {
		return false, "", err
	}
	matches := resources.Find(kinds, word)
	if len(matches) != 1 {
		return false, "", hint.Add(errs.Newf(errs.NotFound, "kind %q does not exist on the server", word),
			"'freshet get all' shows the kinds that have objects.")
	}
	attributes := map[string]any{"verb": verb, "group": matches[0].Group, "resource": matches[0].Resource}
	if name != "" {
		attributes["name"] = name
	}
	if matches[0].Namespaced {
		attributes["namespace"] = a.organization
	}
	if !slices.Contains(verbs, verb) {
		return false, "", hint.Add(errs.Newf(errs.NotFound, "verb %q does not exist", verb), "Use one of: %s.",
			strings.Join(verbs, ", "))
	}
	review, err := a.Post(ctx, resources.Ref{Kind: command.AccessReviews}, "", map[string]any{
		"apiVersion": command.AccessReviews.APIVersion(), "kind": command.AccessReviews.Kind,
		"spec": map[string]any{"resourceAttributes": attributes},
	})
	if err != nil {
		return false, "", err
	}
	if allowed, _ := review.Field("status", "allowed").(bool); allowed {
		return true, "yes", nil
	}
	result = "no"
	if reason := review.Text("status", "reason"); reason != "" {
		result += ": " + output.Clean(reason)
	}
	return false, result, nil
}

// rule is a set of permissions with their restrictions.
type rule struct {
	By           string              `json:"by"`
	Role         string              `json:"role"`
	Binding      string              `json:"binding"`
	Permissions  []string            `json:"permissions"`
	Restrictions []map[string]string `json:"restrictions"`
	CEL          string              `json:"cel"`
}

func (a permissionCheck) rules(ctx context.Context) ([]rule, error) {
	review, err := a.Post(ctx, resources.Ref{Kind: command.RulesReviews}, "", map[string]any{
		"apiVersion": command.RulesReviews.APIVersion(), "kind": command.RulesReviews.Kind,
		"spec": map[string]any{"namespace": a.organization},
	})
	if err != nil {
		return nil, err
	}
	var result struct {
		Status struct {
			Rules []rule `json:"rules"`
		} `json:"status"`
	}
	if err := review.Into(&result); err != nil {
		return nil, fmt.Errorf("decoding the server's response: %w", err)
	}
	return result.Status.Rules, nil
}

// scopeText describes the scope of a rule.
func (r rule) scopeText() string {
	switch {
	case r.CEL != "":
		return "where " + r.CEL
	case len(r.Restrictions) == 0:
		return "everywhere"
	}
	var scopes []string
	for _, restriction := range r.Restrictions {
		scopes = append(scopes, scopeOf(restriction).String())
	}
	return strings.Join(scopes, " or ")
}

func (r rule) source() string {
	if r.Binding == "" {
		return r.By
	}
	return fmt.Sprintf("%s by binding %s", r.Role, r.Binding)
}

// permission checks a permission, anywhere or for a scope. It does not evaluate CEL
// conditions: only the server can, so it shows them.
func (a permissionCheck) permission(ctx context.Context, permission string,
	at scope,
) (yes bool, result string, err error) {
	if strings.Count(permission, ".") != 2 {
		return false, "", hint.Add(errs.Newf(errs.Invalid, "permission %q is not valid", permission),
			"Permissions have the form messaging.topics.produce ('freshet can-i --list' shows yours); a verb requires "+
				"a kind, as in 'freshet can-i delete mc'.")
	}
	rules, err := a.rules(ctx)
	if err != nil {
		return false, "", err
	}
	var limits []string
	for _, r := range rules {
		if !slices.Contains(r.Permissions, permission) {
			continue
		}
		matches := len(at) == 0 || r.CEL == "" && len(r.Restrictions) == 0
		for _, restriction := range r.Restrictions {
			matches = matches || scopeOf(restriction).covers(at)
		}
		if r.CEL != "" {
			limits = append(limits, fmt.Sprintf("%s (%s)", r.scopeText(), r.source()))
			continue
		}
		if !matches {
			continue
		}
		if len(r.Restrictions) == 0 || len(at) > 0 {
			return true, "yes (" + r.source() + ")", nil
		}
		limits = append(limits, fmt.Sprintf("on %s (%s)", r.scopeText(), r.source()))
	}
	if len(limits) > 0 {
		return true, "yes, " + output.Clean(strings.Join(limits, "; ")), nil
	}
	return false, "no", a.requirePermission(ctx, permission)
}

// requirePermission returns an error if a permission does not exist. The predefined roles
// contain every permission, and every caller may list them.
func (a permissionCheck) requirePermission(ctx context.Context, permission string) error {
	roles, err := a.List(ctx, clusterRoles, "", resources.ListOptions{})
	if err != nil {
		return err
	}
	var similar []string
	service := permission[:strings.LastIndex(permission, ".")+1]
	for _, role := range roles {
		list, _ := role.Field("spec", "permissions").([]any)
		for _, item := range list {
			existing := fmt.Sprint(item)
			if existing == permission {
				return nil
			}
			if strings.HasPrefix(existing, service) && !slices.Contains(similar, existing) {
				similar = append(similar, existing)
			}
		}
	}
	missing := errs.Newf(errs.NotFound, "permission %q does not exist", permission)
	if len(similar) > 0 {
		return hint.Add(missing, "Those of %s are: %s.", strings.TrimSuffix(service, "."), strings.Join(similar, ", "))
	}
	return hint.Add(missing, "'freshet get clusterrole org-admin -o yaml' lists the permissions.")
}

// list prints all permissions, one line for each resource of a rule.
func (a permissionCheck) list(ctx context.Context, format output.Format) error {
	rules, err := a.rules(ctx)
	if err != nil {
		return err
	}
	if format.IsData() {
		return output.Value(a.env.Out, format, rules)
	}
	t := output.Table{Columns: output.Columns("Resource", "Verbs", "Where", "Granted by")}
	for _, r := range rules {
		var order []string
		verbs := map[string][]string{}
		for _, p := range r.Permissions {
			i := strings.LastIndex(p, ".")
			if verbs[p[:max(i, 0)]] == nil {
				order = append(order, p[:max(i, 0)])
			}
			verbs[p[:max(i, 0)]] = append(verbs[p[:max(i, 0)]], p[i+1:])
		}
		for _, resource := range order {
			t.Rows = append(t.Rows, []string{resource, strings.Join(verbs[resource], ","), r.scopeText(), r.source()})
		}
	}
	if len(t.Rows) == 0 {
		return a.env.Notef("You have no permissions in organization %s. An administrator grants roles "+
			"with 'freshet grant'.\n", a.organization)
	}
	return t.Write(a.env.Out)
}
