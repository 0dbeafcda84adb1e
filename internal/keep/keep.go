// Package keep pins module versions while the packages that use them are being written.
package keep

import (
	_ "github.com/bufbuild/protocompile"
	_ "github.com/cockroachdb/pebble/v2"
	_ "github.com/dlclark/regexp2"
	_ "github.com/go-jose/go-jose/v4"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/spf13/cobra"
	_ "github.com/tidwall/btree"
	_ "go.etcd.io/etcd/client/v3"
	_ "go.etcd.io/etcd/client/v3/concurrency"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/time/rate"
	_ "k8s.io/apiserver/pkg/cel"
	_ "k8s.io/apiserver/pkg/server"
	_ "k8s.io/apiserver/pkg/server/options"
	_ "k8s.io/client-go/dynamic/dynamicinformer"
	_ "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/metadata/metadatainformer"
	_ "sigs.k8s.io/yaml"
)
