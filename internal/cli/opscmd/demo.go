package opscmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
	"freshet/internal/cli/output"
)

// The names of the demo. The label marks the demo's organization, so that the command never
// changes or removes an organization that a user created.
const (
	demoInstance = "shop"
	demoCluster  = "live"
	demoLabel    = "app.kubernetes.io/managed-by"
	demoOwner    = "freshet-demo"
	demoOrders   = "orders"
	demoParcels  = "shipments"
)

// demo is the state of one demo command.
type demo struct {
	env          *command.Env
	resources    *resources.Client
	organization string
	period       time.Duration
	rate         int
	format       output.Format
}

// demoResult is the demo in the form of -o json.
type demoResult struct {
	Organization string   `json:"organization"`
	Cluster      string   `json:"cluster"`
	Topics       []string `json:"topics"`
	Orders       int64    `json:"orders"`  // that this run has taken
	Shipped      int64    `json:"shipped"` // that this run has shipped
	Console      string   `json:"console"`
}

func newDemo(env *command.Env) *cobra.Command {
	d := demo{env: env}
	var remove bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Create a demo with live data",
		Long: `Create a demo: an organization with an instance, a cluster, service accounts and roles;
topics with Avro schemas; a shop that takes orders and a warehouse that ships them, for the
duration of --for. Only system administrators can use it. A second run creates missing
objects and continues. --remove deletes the demo.`,
		Example: `  # orders for ten seconds
  freshet demo --for 10s

  # list its resources, and show the last orders as JSON
  freshet get all -n demo
  freshet tail orders -n demo --cluster live --from earliest --no-follow --decode registry | tail -n 3

  # delete it
  freshet demo --remove`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.period < 0 || d.period > 24*time.Hour || d.rate < 1 || d.rate > 1000 {
				return command.Usagef(cmd, "--for must be 0 to 24h and --rate 1 to 1000")
			}
			r, _, err := env.Resources()
			if err != nil {
				return err
			}
			d.resources = r
			if remove {
				ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
				defer cancel()
				return d.remove(ctx)
			}
			return d.run(cmd.Context(), timeout)
		},
	}
	f := cmd.Flags()
	output.AddFlag(f, &d.format, output.FormatText, output.FormatJSON, output.FormatYAML)
	f.DurationVar(&d.period, "for", 30*time.Second, "`duration` of the order stream; 0 only creates the objects")
	f.IntVar(&d.rate, "rate", 10, "`number` of orders per second")
	f.BoolVar(&remove, "remove", false, "delete the demo")
	f.StringVar(&d.organization, "name", "demo", "`name` of the organization")
	f.DurationVar(&timeout, "timeout", 2*time.Minute, "timeout for creating or deleting the objects")
	return cmd
}

// printf prints a line for people: nothing if the output is for programs.
func (d *demo) printf(format string, args ...any) error {
	if d.format.IsData() {
		return nil
	}
	return d.env.Printf(format+"\n", args...)
}

// done reports the deletion of the demo.
func (d *demo) done(action, sentence string) error {
	return command.Result{Kind: "demo", Name: d.organization, Action: action}.Print(d.env.Out, d.format, sentence,
		d.organization)
}

func (d *demo) run(ctx context.Context, timeout time.Duration) error {
	making, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := d.createResources(making); err != nil {
		if errors.Is(err, client.ErrDenied) {
			return hint.Add(err, "The demo requires a system administrator: run it on the machine of the server, or "+
				"with --credentials-file admin.json.")
		}
		return err
	}
	env := *d.env
	env.Flags.Organization, env.Flags.Cluster = d.organization, demoCluster
	conn, err := env.ClusterClient(making)
	if err != nil {
		return err
	}
	defer conn.Close()
	shop := &shop{demo: d, conn: conn}
	if err := shop.createTopics(making); err != nil {
		return err
	}
	if err := d.printf("organization %s has cluster %s with the topics %s and %s", d.organization,
		demoCluster, demoOrders,
		demoParcels); err != nil {
		return err
	}
	if d.period > 0 {
		if err := shop.trade(ctx); err != nil {
			return err
		}
	}
	if d.format.IsData() {
		return output.Value(d.env.Out, d.format, demoResult{
			Organization: d.organization, Cluster: demoCluster, Topics: []string{demoOrders, demoParcels},
			Orders: shop.taken.Load(), Shipped: shop.shipped.Load(), Console: conn.BaseURL() + "/console/",
		})
	}
	return d.printf("see %s/console/, or 'freshet tail %s -n %s --cluster %s --from earliest --decode "+
		"registry'; delete the demo with 'freshet demo --remove'",
		conn.BaseURL(), demoOrders, d.organization, demoCluster)
}

// createResources creates the missing resources and waits until the cluster is ready.
func (d *demo) createResources(ctx context.Context) error {
	if err := d.ensureOrganization(ctx); err != nil {
		return err
	}
	objects := []resources.Object{
		d.object(resources.MessagingInstances, demoInstance, nil),
		d.object(resources.MessagingClusters, demoCluster,
			map[string]any{"instanceName": demoInstance, "location": "local", "broker": map[string]any{}}),
		d.object(resources.ServiceAccounts, "storefront", nil),
		d.object(resources.ServiceAccounts, "warehouse", nil),
		d.binding("topic-producer", "storefront"),
		d.binding("topic-consumer", "warehouse"),
		d.binding("org-readonly", "warehouse"),
	}
	kinds := map[string]resources.Kind{}
	for _, k := range []resources.Kind{
		resources.MessagingInstances, resources.MessagingClusters,
		resources.ServiceAccounts, resources.RoleBindings,
	} {
		kinds[k.Kind] = k
	}
	for _, o := range objects {
		ref := resources.Ref{Kind: kinds[o.Kind()], Organization: d.organization, Name: o.Name()}
		if _, err := d.resources.Apply(ctx, ref, o,
			resources.WriteOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("creating %s: %w", ref, err)
		}
	}
	ref := resources.Ref{Kind: resources.MessagingClusters, Organization: d.organization, Name: demoCluster}
	_, err := d.resources.Wait(ctx, ref,
		func(o resources.Object) (bool, error) { return o != nil && o.Condition("Ready").Status == "True", nil })
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", ref, err)
	}
	return nil
}

// ensureOrganization creates the demo's organization if it does not exist. It returns an error if an
// organization of that name does not belong to the demo.
func (d *demo) ensureOrganization(ctx context.Context) error {
	ref := resources.Ref{Kind: resources.Organizations, Name: d.organization}
	found, err := d.resources.Get(ctx, ref)
	switch {
	case errors.Is(err, client.ErrNotFound):
		_, err = d.resources.Create(ctx, resources.Organizations, "", map[string]any{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": d.organization, "labels": map[string]any{demoLabel: demoOwner}},
		}, resources.WriteOptions{FieldManager: fieldManager})
		return err
	case err != nil:
		return err
	case found.Text("metadata", "labels", demoLabel) != demoOwner:
		return hint.Add(fmt.Errorf("organization %s already exists and was not created by this command",
			d.organization), "Choose another name with --name.")
	}
	return nil
}

func (d *demo) object(kind resources.Kind, name string, spec map[string]any) resources.Object {
	o := resources.Object{
		"apiVersion": kind.APIVersion(), "kind": kind.Kind,
		"metadata": map[string]any{"name": name, "namespace": d.organization},
	}
	if spec != nil {
		o["spec"] = spec
	}
	return o
}

func (d *demo) binding(role, account string) resources.Object {
	return d.object(resources.RoleBindings, role+"."+account, map[string]any{
		"roleRef":  map[string]any{"apiGroup": resources.Group, "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": resources.Group, "kind": "ServiceAccount", "name": account}},
	})
}

// remove deletes the demo, clusters before their instances. It fails if the organization
// has objects that the demo did not create.
func (d *demo) remove(ctx context.Context) error {
	organization := resources.Ref{Kind: resources.Organizations, Name: d.organization}
	if _, err := d.resources.Get(ctx, organization); errors.Is(err, client.ErrNotFound) {
		return d.done("absent", "organization %s does not exist")
	}
	if err := d.ensureOrganization(ctx); err != nil {
		return err
	}
	ref := func(kind resources.Kind, name string) resources.Ref {
		return resources.Ref{Kind: kind, Organization: d.organization, Name: name}
	}
	for _, r := range []resources.Ref{
		ref(resources.MessagingClusters, demoCluster), ref(resources.MessagingInstances, demoInstance),
		ref(resources.RoleBindings, "topic-producer.storefront"),
		ref(resources.RoleBindings, "topic-consumer.warehouse"), ref(resources.RoleBindings, "org-readonly.warehouse"),
		ref(resources.ServiceAccounts, "storefront"), ref(resources.ServiceAccounts, "warehouse"), organization,
	} {
		err := d.resources.Delete(ctx, r, resources.DeleteOptions{GracePeriod: -1})
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return hint.Add(fmt.Errorf("deleting %s: %w", r, err), "'freshet get all -n %s' shows the remaining "+
				"objects; delete those that the demo did not create yourself.", d.organization)
		}
		if _, err := d.resources.Wait(ctx, r,
			func(o resources.Object) (bool, error) { return o == nil, nil }); err != nil {
			return fmt.Errorf("waiting until %s is deleted: %w", r, err)
		}
	}
	return d.done("deleted", "demo in organization %s deleted")
}
