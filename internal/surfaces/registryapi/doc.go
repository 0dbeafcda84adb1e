// Package registryapi is the HTTP surface of the schema registry: the
// endpoints of docs/spec/registry.md#endpoints, which unmodified clients use,
// and a few of our own under /registry/v1alpha1/.
//
// It owns paths, media types, bodies, status codes, the numeric error codes,
// and which permission a call needs. What a call does is the business of
// schemas; who is calling that of identity; whether they may that of access.
// Which registry answers is decided by whoever implements the Resolver, by Host;
// the roles that a call asks are declared in surface.
//
// Anything that is not an endpoint, wrong methods included, is answered 404
// with the registry's own body.
package registryapi
