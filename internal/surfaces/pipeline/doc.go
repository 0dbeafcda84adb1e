// Package pipeline runs the steps of a request. Every HTTP surface uses Serve, so that all
// surfaces run the same steps in the same order:
//
//	route         finds the operation; a malformed request or an unknown path ends here
//	resolve       finds the cluster of the request's host or path
//	authenticate  identifies the caller by its credentials, which are for that cluster
//	forward       sends the call to the member of the ensemble that owns its topic
//	meter         counts the call against the quotas of the cluster and its organization
//	authorize     checks the caller's permission on the resource that the path names
//	limit         takes one of the server's slots for concurrent requests
//	handle        reads the body, calls the domain and writes the response
//	audit         records changes and denied calls
//	map errors    responds with the error in the surface's own form
//
// The order follows from what each step needs and protects:
//
//   - A token is valid for the audiences of one cluster, so resolve precedes authenticate.
//     Only callers of the cluster's organization can find out whether it exists (Disclose).
//   - forward follows authenticate, so that an unauthenticated caller costs the other members
//     nothing. It precedes the other steps, because the owner repeats all of them: each call
//     is metered, authorized, limited and audited exactly once.
//   - meter precedes authorize, because authorizing costs time and denied calls would be an
//     unlimited way to use it up.
//   - limit follows authorize, so that a denied caller never holds a slot that other callers
//     need. The body is read after both, because it uses memory.
//   - audit follows handle, because the record has the status of the response, and precedes
//     the error response, so that a client that has its response also has its record.
//
// Two kinds of calls differ. A public operation (an OpenAPI document, a sign-in page) has no
// caller: route is followed by handle. A stream's ticket can only be checked by the owner of
// the topic; see OwnerAuthenticator. An operation that decides by what it reads, such as a
// list that shows what the caller may see, authorizes in handle.
//
// Call has the state of a request and the steps that are the same for all surfaces. Steps are
// those that differ. Surface has what all requests of a surface share, with its one table
// from errors to responses (ErrorTable). StatusErrors is the table of the surfaces that
// respond with a Status like the resource API.
//
// The Kafka protocol has connections instead of requests, so kafkaapi does not use Serve. It
// resolves and authenticates once per connection, and clients find owners themselves. Its
// steps use Options, Disclose and access.AuthorizeTopic like those of the other surfaces.
// The API server has its own chain of handlers; it uses Record and Challenge.
//
// The interfaces Resolver, Authenticator, Authorizer and Auditor are declared here and
// implemented elsewhere: dataplane resolves, identity authenticates, access authorizes, audit
// stores records. Authenticator and Authorizer are required: the constructors of surfaces
// panic without them, because a surface without access control would admit every caller.
// Auditor and Limiter may be nil; then the surface records nothing or limits nothing. HTTP
// surfaces take no logger, because web.Middleware logs their requests. Code that only
// concerns HTTP is in web. The package has no locks.
package pipeline
