// Package pipeline is the vocabulary that every surface shares: the roles that a
// surface asks (Resolver, Authenticator, Authorizer, Auditor, Limiter), the
// Options that carry them, and the one way to make an audit record.
//
// A role that is nil has one meaning everywhere. Those that decide (Resolver,
// Authenticator, Authorizer) are required: New panics without them, since a
// surface that does not ask lets everybody in. Those that observe or bound
// (Auditor, Limiter) may be nil, and then nothing is recorded or bounded. A
// surface that logs on its own behalf takes a Log, and nil discards; the surfaces
// over HTTP have no need of one, their requests are logged by web.Middleware.
//
// It decides nothing itself: who is calling is identity's business, what they
// may do access's, where records go audit's. What of a request is HTTP and
// nothing else is in web.
package pipeline
