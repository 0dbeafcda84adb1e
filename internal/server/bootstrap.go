package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"freshet/api/generated/clientset/versioned"
	"freshet/api/v1alpha1"
	"freshet/internal/base/privatefile"
	"freshet/internal/config"
	"freshet/internal/controlplane/kinds/messagingcluster"
	"freshet/internal/controlplane/pools"
	"freshet/internal/controlplane/reconcile/conditions"
	"freshet/internal/identity"
	"freshet/internal/ops/kubeconfig"
)

const bootstrapTimeout = 30 * time.Second

// bootstrap does the first start: it creates the default instance and cluster, the system
// administrator, and the files with the administrator's credentials. At later starts it only
// writes the files. If the administrator exists, the first start was done, so an instance or
// cluster that a user has deleted is not created again. first reports whether the
// administrator was created.
func bootstrap(ctx context.Context, cfg *config.Config, client versioned.Interface, plan *pools.Plan,
	issuer *identity.Issuer,
) (first bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bootstrapTimeout)
	defer cancel()
	_, err = client.CloudV1alpha1().ServiceAccounts(cfg.Admin.Organization).Get(ctx, cfg.Admin.ServiceAccount,
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		first = true
		// The administrator is created last, so that an interrupted first start is done
		// again.
		if err := ensureDefaults(ctx, cfg, client, plan); err != nil {
			return false, fmt.Errorf("creating the default instance and cluster: %w", err)
		}
		err = ensureAdmin(ctx, cfg, client)
	}
	if err != nil {
		return false, fmt.Errorf("creating the system administrator: %w", err)
	}
	err = writeAdminFiles(ctx, cfg, client, issuer)
	if _, older := os.Stat(cfg.Path("admin.json")); errors.Is(err, syscall.ENOSPC) && older == nil {
		return first, nil // the files of an earlier start exist; diskReserve logs that the disk is full
	}
	return first, err
}

// ensureAdmin creates the administrator's account, unless another replica was faster.
func ensureAdmin(ctx context.Context, cfg *config.Config, client versioned.Interface) error {
	_, err := client.CloudV1alpha1().ServiceAccounts(cfg.Admin.Organization).Create(ctx, &v1alpha1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Name:        cfg.Admin.ServiceAccount,
			Annotations: map[string]string{v1alpha1.AnnotationServiceAccountRole: v1alpha1.ServiceAccountRoleAdmin},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func ensureDefaults(ctx context.Context, cfg *config.Config, client versioned.Interface, plan *pools.Plan) error {
	organization, name, ok := strings.Cut(cfg.DefaultCluster, "/")
	if !ok || len(plan.Pools) == 0 || len(plan.Pools[0].Members) == 0 {
		return nil
	}
	_, err := client.CloudV1alpha1().MessagingInstances(organization).Create(ctx, &v1alpha1.MessagingInstance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MessagingInstanceSpec{PoolRef: plan.DefaultPool()},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = client.CloudV1alpha1().MessagingClusters(organization).Create(ctx, &v1alpha1.MessagingCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.MessagingClusterSpec{
			InstanceName: name,
			Location:     plan.Pools[0].Members[0].Location,
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

// writeAdminFiles waits for the administrator's credentials and writes them, with a
// kubeconfig, into the data directory. Both contain the current addresses, which may differ
// from those of the first start.
func writeAdminFiles(ctx context.Context, cfg *config.Config, client versioned.Interface,
	issuer *identity.Issuer,
) error {
	file, err := adminCredentials(ctx, cfg, client)
	if err != nil {
		return fmt.Errorf("waiting for the administrator's credentials: %w", err)
	}
	credentials, err := identity.ParseCredentials(file)
	if err != nil {
		return fmt.Errorf("reading the administrator's credentials: %w", err)
	}
	credentials = issuer.WithCurrentURL(credentials, cfg.Admin.Organization, cfg.Admin.ServiceAccount)
	if err := writeChanged(cfg.Path("admin.json"), credentials.File()); err != nil {
		return err
	}
	token, err := privatefile.ReadOrCreate(cfg.Path("admin.token"))
	if err != nil {
		return err
	}
	options := kubeconfig.Options{Server: cfg.SecureURL(), Token: token, Namespace: cfg.Admin.Organization}
	if options.Server == "" {
		// Kubernetes clients send no credentials over plain HTTP. A kubeconfig of an
		// earlier start would contain an address that does not exist any more.
		if err := os.Remove(cfg.Path("kubeconfig")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing the old kubeconfig: %w", err)
		}
		return nil
	}
	if cfg.TLS.CertFile == "" {
		if options.CA, err = os.ReadFile(cfg.Path("tls", "ca.crt")); err != nil {
			return fmt.Errorf("reading the certificate authority: %w", err)
		}
	}
	text, err := kubeconfig.Marshal(options)
	if err != nil {
		return err
	}
	return writeChanged(cfg.Path("kubeconfig"), text)
}

func adminCredentials(ctx context.Context, cfg *config.Config, client versioned.Interface) ([]byte, error) {
	watcher, err := client.CloudV1alpha1().ServiceAccounts(cfg.Admin.Organization).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + cfg.Admin.ServiceAccount,
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

// writeChanged writes a file unless it already has the same contents.
func writeChanged(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return privatefile.Write(path, data)
}
