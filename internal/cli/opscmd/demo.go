package opscmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"freshet/client"
	"freshet/client/resources"
	"freshet/internal/cli/command"
	"freshet/internal/cli/hint"
)

// What the example is made of. The label says whose the organization is, so that
// nobody's own is taken for it and removed.
const (
	demoInstance = "shop"
	demoCluster  = "live"
	demoLabel    = "app.kubernetes.io/managed-by"
	demoOwner    = "freshet-demo"
	demoOrders   = "orders"
	demoParcels  = "shipments"
)

// demo is one run.
type demo struct {
	env          *command.Env
	resources    *resources.Client
	organization string
	period       time.Duration
	rate         int
}

func newDemo(env *command.Env) *cobra.Command {
	d := demo{env: env}
	var remove bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Fill a server with a small living example",
		Long: `Fill a server with a small living example: an organization with an instance, a cluster,
service accounts and roles; topics with Avro schemas; a shop that takes orders and a
warehouse that ships them, for as long as --for says. It takes a system administrator.
Run again, it makes what is missing and goes on. --remove takes all of it away.`,
		Example: `  # orders for ten seconds, then look around in the console
  freshet demo --for 10s

  # what is there now; and the orders as JSON
  freshet get all -n demo
  freshet tail orders -n demo --cluster live --from earliest --no-follow --decode registry | tail -n 3

  # take it away
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
	f.DurationVar(&d.period, "for", 30*time.Second, "how `long` orders come in; 0 only makes everything")
	f.IntVar(&d.rate, "rate", 10, "orders per `second`")
	f.BoolVar(&remove, "remove", false, "take the example away")
	f.StringVar(&d.organization, "name", "demo", "`name` of the organization")
	f.DurationVar(&timeout, "timeout", 2*time.Minute, "how long making or removing may take")
	return cmd
}

func (d *demo) say(format string, args ...any) error {
	_, err := fmt.Fprintf(d.env.Out, format+"\n", args...)
	return err
}

func (d *demo) run(ctx context.Context, timeout time.Duration) error {
	making, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := d.make(making); err != nil {
		if errors.Is(err, client.ErrDenied) {
			return hint.Add(err, "The example takes a system administrator: run it beside the server, or with "+
				"--credentials-file admin.json.")
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
	if err := shop.open(making); err != nil {
		return err
	}
	if err := d.say("organization %s has cluster %s with the topics %s and %s", d.organization, demoCluster, demoOrders,
		demoParcels); err != nil {
		return err
	}
	if d.period > 0 {
		if err := shop.trade(ctx); err != nil {
			return err
		}
	}
	return d.say("look at it: %s/console/, or 'freshet tail %s -n %s --cluster %s --from earliest --decode "+
		"registry'; take it away with 'freshet demo --remove'",
		conn.BaseURL(), demoOrders, d.organization, demoCluster)
}

// make makes what is missing of the resources, and waits until the cluster works.
func (d *demo) make(ctx context.Context) error {
	if err := d.own(ctx); err != nil {
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
			return fmt.Errorf("making %s: %w", ref, err)
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

// own makes the organization, unless it is there and the example's.
func (d *demo) own(ctx context.Context) error {
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
		return hint.Add(fmt.Errorf("there is an organization %s that this command has not made", d.organization),
			"Choose another name with --name.")
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

// remove takes everything away, clusters before their instances. What others have
// added to the organization keeps it.
func (d *demo) remove(ctx context.Context) error {
	organization := resources.Ref{Kind: resources.Organizations, Name: d.organization}
	if _, err := d.resources.Get(ctx, organization); errors.Is(err, client.ErrNotFound) {
		return d.say("there is no organization %s", d.organization)
	}
	if err := d.own(ctx); err != nil {
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
			return hint.Add(fmt.Errorf("removing %s: %w", r, err), "'freshet get all -n %s' shows what is there; "+
				"what others have put there they have to remove.", d.organization)
		}
		if _, err := d.resources.Wait(ctx, r,
			func(o resources.Object) (bool, error) { return o == nil, nil }); err != nil {
			return fmt.Errorf("waiting until %s is gone: %w", r, err)
		}
	}
	return d.say("the example in organization %s is gone", d.organization)
}
