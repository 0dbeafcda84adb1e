// Package bootstrap does the first start: it creates the default instance and cluster, and the
// system administrator. The files with the administrator's credentials are written by
// ops/adminfiles. It has no locks.
package bootstrap

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/controlplane/kinds/messagingcluster"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/identity"
)

// Timeout is the timeout of Run, and a useful one for WriteFiles.
const Timeout = 30 * time.Second

// Options are the objects and files of the first start.
type Options struct {
	Client versioned.Interface
	Plan   *pools.Plan
	Issuer *identity.Issuer
	// Organization and Account are the names of the system administrator.
	Organization, Account string
	// DefaultCluster is the cluster to create, as organization/name; another value for none.
	DefaultCluster string
	Files          Files
}

// Files are the files with the administrator's credentials.
type Files interface {
	// Write writes the credentials, and files that depend on them.
	Write(credentials []byte) error
	// Exist reports whether an earlier start has written the files.
	Exist() bool
}

// Run does the first start: it creates the default instance and cluster, the system
// administrator, and the files with the administrator's credentials. At later starts it only
// writes the files. If the administrator exists, the first start was done, so an instance or
// cluster that a user has deleted is not created again. first reports whether the
// administrator was created.
func Run(ctx context.Context, opts Options) (first bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	_, err = opts.Client.CloudV1alpha1().ServiceAccounts(opts.Organization).Get(ctx, opts.Account, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		first = true
		// The administrator is created last, so that an interrupted first start is done
		// again.
		if err := ensureDefaults(ctx, opts); err != nil {
			return false, fmt.Errorf("creating the default instance and cluster: %w", err)
		}
		err = ensureAdmin(ctx, opts)
	}
	if err != nil {
		return false, fmt.Errorf("creating the system administrator: %w", err)
	}
	err = WriteFiles(ctx, opts)
	if errors.Is(err, syscall.ENOSPC) && opts.Files.Exist() {
		return first, nil // the files of an earlier start exist; disk.Reserve logs that the disk is full
	}
	return first, err
}

// ensureAdmin creates the administrator's account, unless another replica was faster.
func ensureAdmin(ctx context.Context, opts Options) error {
	_, err := opts.Client.CloudV1alpha1().ServiceAccounts(opts.Organization).Create(ctx, &v1alpha1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Name:        opts.Account,
			Annotations: map[string]string{v1alpha1.AnnotationServiceAccountRole: v1alpha1.ServiceAccountRoleAdmin},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func ensureDefaults(ctx context.Context, opts Options) error {
	organization, name, ok := strings.Cut(opts.DefaultCluster, "/")
	if !ok || len(opts.Plan.Pools) == 0 || len(opts.Plan.Pools[0].Members) == 0 {
		return nil
	}
	_, err := opts.Client.CloudV1alpha1().MessagingInstances(organization).Create(ctx, &v1alpha1.MessagingInstance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MessagingInstanceSpec{PoolRef: opts.Plan.DefaultPool()},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = opts.Client.CloudV1alpha1().MessagingClusters(organization).Create(ctx, &v1alpha1.MessagingCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.MessagingClusterSpec{
			InstanceName: name,
			Location:     opts.Plan.Pools[0].Members[0].Location,
			// A pool member with an embedded engine has only shared nodes.
			Broker: v1alpha1.Broker{
				ResourceSpec: &v1alpha1.BrokerResourceSpec{NodeType: messagingcluster.NodeTypeShared},
			},
			Storage: &v1alpha1.Storage{
				ResourceSpec: &v1alpha1.StorageResourceSpec{NodeType: messagingcluster.NodeTypeShared},
			},
			Config: &v1alpha1.ClusterConfig{Protocols: map[string]v1alpha1.ProtocolSettings{
				messagingcluster.ProtocolStream: {Raw: []byte("{}")},
			}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// WriteFiles waits for the administrator's credentials and writes them to the files.
func WriteFiles(ctx context.Context, opts Options) error {
	file, err := adminCredentials(ctx, opts)
	if err != nil {
		return fmt.Errorf("waiting for the administrator's credentials: %w", err)
	}
	credentials, err := identity.ParseCredentials(file)
	if err != nil {
		return fmt.Errorf("reading the administrator's credentials: %w", err)
	}
	credentials = opts.Issuer.WithCurrentURL(credentials, opts.Organization, opts.Account)
	return opts.Files.Write(credentials.File())
}

func adminCredentials(ctx context.Context, opts Options) ([]byte, error) {
	watcher, err := opts.Client.CloudV1alpha1().ServiceAccounts(opts.Organization).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + opts.Account,
	})
	if err != nil {
		return nil, err
	}
	defer watcher.Stop()
	for {
		select {
		case event, ok := <-watcher.ResultChan():
			if !ok {
				return nil, errors.New("watch of the administrator's account ended")
			}
			sa, isAccount := event.Object.(*v1alpha1.ServiceAccount)
			if isAccount && sa.Status.PrivateKeyData != "" && conditions.IsReady(sa.Status.Conditions, sa.Generation) {
				return base64.StdEncoding.DecodeString(sa.Status.PrivateKeyData)
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
