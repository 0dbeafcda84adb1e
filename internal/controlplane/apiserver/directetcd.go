package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagefeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"freshet/internal/controlplane/budget"
	"freshet/internal/controlplane/etcd"
)

// directStores opens the kinds' stores with direct calls of an etcd member in this process. The API
// machinery creates its clients from addresses, and each of their reads and writes is a message
// that is encoded, framed, scheduled and decoded twice
// (docs/adr/0016-in-process-etcd-client.md). The stores themselves and their watch caches are
// those of the API machinery.
type directStores struct {
	generic.RESTOptionsGetter
	member    *etcd.Member
	client    *clientv3.Client // for the compactor
	compactor interface {
		etcd3.Compactor
		Stop()
	}
}

// useDirectStores makes the server open its stores this way if its etcd is embedded.
func useDirectStores(cfg Config, config *genericapiserver.Config) *directStores {
	member := cfg.Etcd.Member
	if member == nil {
		return nil
	}
	client := member.Client()
	s := &directStores{
		RESTOptionsGetter: config.RESTOptionsGetter, member: member, client: client,
		compactor: etcd3.NewCompactor(client, cmp.Or(cfg.CompactionInterval, compactionInterval),
			clock.RealClock{}, nil),
	}
	config.RESTOptionsGetter = s
	config.AddHealthChecks(healthz.NamedCheck("etcd", s.probe))
	config.AddReadyzChecks(healthz.NamedCheck("etcd-readiness", s.probe))
	// Lists are served from the watch caches if the member reports the progress of watches. The
	// stores check that by address, but their clients have none.
	storagefeature.DefaultFeatureSupportChecker.CheckClient(client.Ctx(), clientWithURLs{client, cfg.Etcd.URLs},
		storage.RequestWatchProgress)
	return s
}

// clientWithURLs is a client that returns the address of its member.
type clientWithURLs struct {
	*clientv3.Client
	urls []string
}

func (n clientWithURLs) Endpoints() []string { return n.urls }

const probeTimeout = 2 * time.Second

// probe returns an error if the member does not respond.
func (s *directStores) probe(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	if _, err := s.client.Get(ctx, "health"); err != nil {
		return fmt.Errorf("reading from the embedded etcd: %w", err)
	}
	return nil
}

// close closes the client and compactor that all stores share, after the stores.
func (s *directStores) close() {
	if s != nil {
		s.compactor.Stop()
		_ = s.client.Close() // returns only that it is closed
	}
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (s *directStores) GetRESTOptions(resource schema.GroupResource,
	example runtime.Object,
) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	options.Decorator = s.open
	return options, err
}

// open creates the store of one resource, with a watch cache. It has its own client, because
// watches of one client share a stream and would wait for each other.
func (s *directStores) open(config *storagebackend.ConfigForResource, resourcePrefix string,
	key func(runtime.Object) (string, error),
	newObject, newList func() runtime.Object, attributes storage.AttrFunc, indexed storage.IndexerFuncs,
	indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	client := &kubernetes.Client{Client: s.member.Client()}
	client.Kubernetes = client
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	versioner := storage.APIObjectVersioner{}
	transformer := config.Transformer
	if transformer == nil {
		transformer = budget.Unchanged{}
	}
	raw, err := etcd3.New(client, s.compactor, config.Codec, newObject, newList, config.Prefix, resourcePrefix,
		config.GroupResource,
		etcd3.WithCorruptObjErrorHandlingTransformer(transformer), config.LeaseManagerConfig,
		etcd3.WithCorruptObjErrorHandlingDecoder(etcd3.NewDefaultDecoder(config.Codec, versioner)), versioner)
	if err != nil {
		_ = client.Close() // unused so far
		return nil, nil, fmt.Errorf("opening the store of %s: %w", config.GroupResource, err)
	}
	stored := etcd3.NewStoreWithUnsafeCorruptObjectDeletion(raw, config.GroupResource)
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: stored, Versioner: versioner, GroupResource: config.GroupResource, ResourcePrefix: resourcePrefix,
		EventsHistoryWindow: config.EventsHistoryWindow, KeyFunc: key, NewFunc: newObject, NewListFunc: newList,
		GetAttrsFunc: attributes, IndexerFuncs: indexed, Indexers: indexers, Codec: config.Codec,
	})
	if err != nil {
		raw.Close()
		_ = client.Close() // unused so far
		return nil, nil, fmt.Errorf("opening the watch cache of %s: %w", config.GroupResource, err)
	}
	delegator := cacher.NewCacheDelegator(cached, stored)
	var once sync.Once // the main resource and the status both call it
	return delegator, func() {
		once.Do(func() {
			delegator.Stop()
			cached.Stop()
			raw.Close()
			_ = client.Close() // returns only that it is closed
		})
	}, nil
}
