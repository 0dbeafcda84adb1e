// Package apiserver serves the resource API (docs/spec/resources.md): a Kubernetes-style API for
// the kinds of api/v1alpha1, stored in etcd.
//
// It owns the scheme, the handler chain and the corrections of the API machinery
// (k8s.io/apiserver), which only packages below internal/controlplane import. Package store
// implements the generic store of all kinds, package etcd the storage. Package identity
// authenticates callers and package access authorizes them, through pipeline.Authenticator and the
// interface Authorizer in auth.go. The kinds are passed in as a list (Config.Kinds) by
// internal/controlplane/kinds, whose reconcilers use this API like any other client, over
// Server.Loopback.
//
// auditNotes.mu is the only lock. It protects the notes of one call and is held for field access
// only.
package apiserver
