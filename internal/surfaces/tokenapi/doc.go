// Package tokenapi is the token surface: the OAuth 2.0 token endpoint with the
// client credentials grant (docs/spec/resources.md#authentication; RFC 6749
// §4.4), OpenID discovery and the JWKS.
//
// It owns the wire: request bodies, RFC 6749 errors, audiences, rate limits.
// Credentials, tokens and keys are identity's. Nothing here echoes or logs a
// secret, and a client id only once it is known to be one: people do put the
// secret into the wrong field.
package tokenapi
