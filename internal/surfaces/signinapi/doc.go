// Package signinapi serves the pages on which users sign in: with a passkey, a password,
// an invitation, a one-time link or an OpenID provider. It also serves the page that
// approves a device, and the authorization endpoint that redirects a browser back to the
// console with a code (docs/spec/signin.md).
//
// It owns pages, cookies, CSRF tokens, rate limits and redirects. signin checks
// credentials and stores sessions; tokenapi has the endpoints that programs call. The
// pages share one style sheet and run only one script, which creates and uses passkeys.
//
// Only this package reads the cookies; all other surfaces need a bearer token. The
// package has no locks.
package signinapi
