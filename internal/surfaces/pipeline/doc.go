// Package pipeline has the interfaces that every surface depends on (Resolver,
// Authenticator, Authorizer, Auditor), the Options that hold them together with a
// web.Limiter, and the one function that builds an audit record.
//
// A nil dependency has the same meaning in every surface. Resolver, Authenticator and
// Authorizer are required: the constructors of surfaces panic without them, because a
// surface without access control would admit every caller. Auditor and Limiter may be
// nil; then the surface records nothing or limits nothing. HTTP surfaces take no logger,
// because web.Middleware logs their requests.
//
// The package implements none of these interfaces: identity authenticates, access
// authorizes, audit stores records. Code that only concerns HTTP is in web. The package
// has no locks.
package pipeline
