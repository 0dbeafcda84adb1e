// Package registryapi is the HTTP surface of the schema registry: the endpoints of
// docs/spec/registry.md#endpoints, which clients of Confluent Schema Registry use
// unmodified, and extensions under /registry/v1alpha1/.
//
// It owns paths, media types, bodies, status codes, the numeric error codes, and the
// permission that each call needs. It does not implement the calls: schemas does.
// pipeline runs the steps of a request. The Resolver selects the registry by the request's
// host.
//
// Unknown paths and wrong methods get 404 with an error body of the registry. The
// package has no locks.
package registryapi
