package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/internal/base/retry"
	"freshet/internal/controlplane/pools"
)

const (
	clustersTimeout = 2 * time.Minute
	clustersPoll    = 20 * time.Millisecond
)

// AwaitClusters waits until every stored cluster is open or has failed. has reports whether a
// cluster is, by its UID.
func AwaitClusters(ctx context.Context, client versioned.Interface, plan *pools.Plan, has func(uid string) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clustersTimeout, errors.New("opening a cluster timed out"))
	defer cancel()
	for {
		settled, err := clustersSettled(ctx, client, plan, has)
		if err != nil {
			return fmt.Errorf("waiting for the clusters: %w", err)
		}
		if settled {
			return nil
		}
		if err := retry.Sleep(ctx, clustersPoll); err != nil {
			return fmt.Errorf("waiting for the clusters: %w", err)
		}
	}
}

// clustersSettled reports whether every stored cluster is open or has failed. It reads the
// store and not the caches of the controllers, which may not contain the objects of the first
// start yet.
func clustersSettled(ctx context.Context, client versioned.Interface, plan *pools.Plan,
	has func(uid string) bool,
) (bool, error) {
	api := client.CloudV1alpha1()
	clusters, err := api.MessagingClusters("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		_, _, planned := plan.Member(cluster.Spec.PoolMemberRef)
		if cluster.DeletionTimestamp != nil || has(string(cluster.UID)) || !planned {
			continue
		}
		_, err := api.MessagingInstances(cluster.Namespace).Get(ctx, cluster.Spec.InstanceName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // it waits for its instance, which may never be created
		}
		return false, err
	}
	return true, nil
}
