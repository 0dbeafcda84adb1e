package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"freshet/api/v1alpha1"
	"freshet/internal/base/errs"
	"freshet/internal/controlplane/etcd"
	"freshet/internal/dataplane"
	"freshet/internal/dataplane/ensemble"
	"freshet/internal/dataplane/provision"
	"freshet/internal/ensemble/bundle"
	"freshet/internal/ensemble/replicated"
	"freshet/internal/ensemble/sharded"
	"freshet/internal/identity"
	"freshet/internal/storage/pebble"
)

// resources creates and compares the etcd data of the first member.
func (m *migration) resources(ctx context.Context) error {
	if m.m.Etcd.Keys > 0 {
		return nil
	}
	m.Report.Step("resources, accounts and keys")
	copied, snapshot, made := m.path("etcd"), m.path("etcd.snapshot"), m.newPath("etcd")
	if err := errors.Join(os.RemoveAll(copied), os.RemoveAll(snapshot), os.RemoveAll(made)); err != nil {
		return err
	}
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(m.From, "etcd"))); err != nil {
		return fmt.Errorf("copying etcd: %w", err)
	}
	survey, err := m.takeSnapshot(ctx, copied, snapshot)
	if err != nil {
		return err
	}
	if err := etcd.Seed(snapshot, made, m.etcdEnsemble()); err != nil {
		return err
	}
	got, err := etcd.TakeDigestStopped(made, survey.Revision)
	if err != nil {
		return err
	}
	if got != survey {
		return fmt.Errorf("comparing resources: got %d keys with checksum %s, want %d with %s: %w", got.Keys,
			got.Sum, survey.Keys, survey.Sum, errDifferent)
	}
	m.m.Etcd = survey
	if err := m.save(); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(copied), os.RemoveAll(snapshot))
}

func (m *migration) etcdEnsemble() *etcd.Ensemble {
	files := bundle.FilesIn(m.Config.BundleDir())
	g := &etcd.Ensemble{
		Self: m.Config.Members.Self, ID: m.joining.EnsembleID, CAFile: files.CA, CertFile: files.Cert,
		KeyFile: files.Key,
	}
	for _, member := range m.Config.Members.List {
		g.Peers = append(g.Peers, etcd.Peer{Name: member.Name, Address: member.Etcd})
	}
	return g
}

// takeSnapshot starts the copy of etcd, adds the keys of the clusters that an ensemble needs,
// and takes a snapshot.
func (m *migration) takeSnapshot(ctx context.Context, dir, snapshot string) (survey etcd.Digest, err error) {
	member, err := etcd.Start(ctx, dir, etcd.Options{QuotaBytes: int64(m.Config.Etcd.Quota)})
	if err != nil {
		return survey, err
	}
	defer func() { err = errors.Join(err, member.Close()) }()
	client, err := member.Endpoints().Client(nil)
	if err != nil {
		return survey, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	found, err := m.read(ctx, client)
	if err != nil {
		return survey, err
	}
	if err := m.plan(ctx, found); err != nil {
		return survey, err
	}
	if err := m.writeClusterKeys(ctx, client); err != nil {
		return survey, err
	}
	if survey, err = etcd.TakeDigest(ctx, client, func(*mvccpb.KeyValue) error { return nil }); err != nil {
		return survey, err
	}
	return survey, etcd.Snapshot(ctx, client, snapshot)
}

// read returns the stored clusters, and checks the encryption keys of the stored secrets.
func (m *migration) read(ctx context.Context,
	client *clientv3.Client,
) (clusters map[string]*v1alpha1.MessagingCluster, err error) {
	clusters, sealed, ours := map[string]*v1alpha1.MessagingCluster{}, map[string]bool{}, 0
	prefix := m.Config.Etcd.Prefix + "/"
	_, err = etcd.TakeDigest(ctx, client, func(kv *mvccpb.KeyValue) error {
		if !strings.HasPrefix(string(kv.Key), prefix) {
			return nil
		}
		ours++
		if id := identity.SealedWith(kv.Value); id != "" {
			sealed[id] = true
		}
		if !strings.HasPrefix(string(kv.Key), prefix+"resources/") ||
			!strings.Contains(string(kv.Key), "/messagingclusters/") {
			return nil
		}
		cluster, err := decodeCluster(kv.Value)
		if err != nil {
			return fmt.Errorf("reading the resource %s: %w", kv.Key, err)
		}
		clusters[string(cluster.UID)] = cluster
		return nil
	})
	if err == nil && ours == 0 {
		err = errs.Newf(errs.NotFound, "etcd of %s has no keys under %s, because the server had another etcd.prefix "+
			"than the member's configuration", m.From, prefix)
	}
	if err == nil {
		err = m.checkKeys(sealed)
	}
	return clusters, err
}

// decodeCluster decodes the stored form of a MessagingCluster.
func decodeCluster(value []byte) (*v1alpha1.MessagingCluster, error) {
	var cluster v1alpha1.MessagingCluster
	raw, ok := strings.CutPrefix(string(value), "k8s\x00")
	if !ok {
		return &cluster, json.Unmarshal(value, &cluster)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal([]byte(raw)); err != nil {
		return nil, err
	}
	return &cluster, cluster.Unmarshal(envelope.Raw)
}

// plan sets the number of shards of each cluster. A continued run keeps the plan.
func (m *migration) plan(ctx context.Context, found map[string]*v1alpha1.MessagingCluster) error {
	if m.m.Planned {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(m.From, "clusters"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	stored := map[string]bool{}
	for _, e := range entries {
		if !e.IsDir() || strings.HasSuffix(e.Name(), deletedSuffix) {
			continue
		}
		stored[e.Name()] = true
		c := Cluster{UID: e.Name(), Name: e.Name()}
		custom := map[string]string(nil)
		if is := found[e.Name()]; is != nil {
			c.Name = is.Namespace + "/" + is.Name
			if is.Spec.Storage != nil {
				c.Copies = provision.WantedCopies(is.Spec.Storage.Replicas)
			}
			if is.Spec.Config != nil {
				custom = is.Spec.Config.Custom
			}
		}
		if exists(m.From, "clusters", c.UID, sharded.ShardDir(0)) {
			return errs.Newf(errs.Conflict, "cluster %s in %s has shards, so it is from a member of an ensemble",
				c.Name, m.From)
		}
		shards, err := dataplane.WantedShards(custom, len(m.Config.Members.List))
		if err != nil {
			return fmt.Errorf("planning the shards of cluster %s: %w", c.Name, err)
		}
		for range shards {
			c.Seeds = append(c.Seeds, replicated.NewSeed())
		}
		m.m.Clusters = append(m.m.Clusters, c)
	}
	for uid, is := range found {
		if is.Status.Storage != nil && !stored[uid] {
			return errs.Newf(errs.Precondition, "cluster %s/%s has run, but its store %s is missing; restore the data "+
				"directory from a backup, or delete the cluster, and then migrate", is.Namespace, is.Name,
				filepath.Join(m.From, "clusters", uid))
		}
	}
	m.m.Planned = true
	return errors.Join(ctx.Err(), m.save())
}

// writeClusterKeys writes the keys of the clusters that the members need into etcd. It first deletes
// keys of an ensemble to which the server may have belonged before.
func (m *migration) writeClusterKeys(ctx context.Context, client *clientv3.Client) error {
	prefix := m.Config.Etcd.Prefix
	var members []string
	for _, member := range m.Config.Members.List {
		members = append(members, member.Name)
	}
	for _, name := range []string{"members", "shards", "clusters", "gone"} {
		if _, err := client.Delete(ctx, prefix+"/"+name+"/", clientv3.WithPrefix()); err != nil {
			return err
		}
	}
	for _, c := range m.m.Clusters {
		journals, err := pebble.Journals(filepath.Join(m.From, "clusters", c.UID))
		if err != nil {
			return fmt.Errorf("reading the journals of cluster %s: %w", c.Name, err)
		}
		journals = slices.DeleteFunc(journals, func(name string) bool {
			_, inShard := sharded.JournalShard(name, len(c.Seeds))
			return inShard
		})
		keys, err := ensemble.SeedKeys(prefix, c.UID, ensemble.Seed{
			Shards: c.Seeds, Members: members, Copies: c.Copies, Member: m.m.Member, Journals: journals,
		})
		if err != nil {
			return err
		}
		for key, value := range keys {
			if _, err := client.Put(ctx, key, value); err != nil {
				return fmt.Errorf("writing the shards of cluster %s: %w", c.Name, err)
			}
		}
	}
	return nil
}
