// Package tokenapi is the token surface: the OAuth 2.0 token endpoint with the
// client credentials grant (docs/spec/resources.md#authentication; RFC 6749
// §4.4), OpenID discovery and the JWKS.
//
// It also serves the grants of signed-in users (authorization code, device code, refresh
// token), revocation and userinfo.
//
// It owns request bodies, RFC 6749 errors, audiences and rate limits. Credentials,
// tokens and keys belong to identity, sign-in to signin and its pages to signinapi. The
// package never returns or logs a secret. It logs a client id only if a client with that
// id exists, because users put the secret into the wrong field. It has no locks.
package tokenapi
