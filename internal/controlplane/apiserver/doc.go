// Package apiserver serves the resource API (docs/spec/resources.md): a
// Kubernetes-style API for the kinds of api/v1alpha1, kept in etcd.
//
// It is the only importer of k8s.io/apiserver. It owns the scheme, the handler
// chain and the corners of the machinery that need rounding off; the generic
// store of all kinds is in store, etcd in etcd. Who a caller is comes from
// identity and what they may do from access, through the two small interfaces
// in auth.go. The kinds come in as a list (Config.Kinds) from internal/controlplane/kinds,
// whose reconcilers talk to this package like any other client, over
// Server.Loopback.
package apiserver
