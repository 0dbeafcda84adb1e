package schemas_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"freshet.dev/client"
	"freshet.dev/client/resources"
	"freshet.dev/client/schemas"
)

// TestNamedClusters: the registry of a cluster is under /stream or at the cluster's root, depending on the type of its
// instance, and the client finds it at both paths.
func TestNamedClusters(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := resources.New(live(t, "", ""))
	for _, kind := range []string{"standard", "dedicated"} {
		must[resources.Object](t)(r.Create(ctx, resources.MessagingInstances, "acme", map[string]any{
			"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "MessagingInstance",
			"metadata": map[string]any{"name": kind}, "spec": map[string]any{"type": kind},
		}, resources.WriteOptions{}))
		must[resources.Object](t)(r.Create(ctx, resources.MessagingClusters, "acme", map[string]any{
			"apiVersion": "cloud.vendor.io/v1alpha1", "kind": "MessagingCluster",
			"metadata": map[string]any{"name": kind},
			"spec":     map[string]any{"instanceName": kind, "location": "local", "broker": map[string]any{}},
		}, resources.WriteOptions{}))
		ready := func(o resources.Object) (bool, error) {
			return o != nil &&
				o.Condition("Ready").Status == "True", nil
		}
		must[resources.Object](t)(
			r.Wait(ctx, resources.Ref{Kind: resources.MessagingClusters, Organization: "acme", Name: kind}, ready))

		c := live(t, "acme", kind)
		registry := schemas.New(c)
		if _, err := registry.Version(ctx, "orders-value", schemas.Latest); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", kind, err)
		}
		if id := must[int](t)(registry.Register(ctx, "orders-value", schemas.Schema{Text: order1})); id != 1 {
			t.Errorf("%s: got id %d, want 1: each cluster has its own registry", kind, id)
		}
		must[*schemas.Schema](t)(registry.ByID(ctx, 1))
		sub := c.Topic("orders").Subscription("s")
		if err := sub.Create(ctx, client.SubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
		must[client.Produced](t)(sub.Topic().Produce(ctx, client.Message{Value: []byte(kind)}))
		for msg, err := range sub.Messages(ctx) {
			if err != nil || string(msg.Value) != kind {
				t.Fatalf("%s: got %v, %v", kind, msg, err)
			}
			msg.Ack()
			break
		}
	}
	if _, err := schemas.New(live(t, "acme", "nowhere")).Subjects(ctx, false); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("missing cluster: got %v, want ErrNotFound", err)
	}
}
