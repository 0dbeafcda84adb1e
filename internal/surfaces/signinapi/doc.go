// Package signinapi is the pages on which people sign in: by passkey, password, invitation,
// one-time link or OpenID provider, the page that says whose a device is, and the
// authorization endpoint that sends a browser back to the console with a code
// (docs/spec/signin.md).
//
// It owns the wire: pages, cookies, CSRF tokens, rate limits, redirects. Who
// somebody is and what is stored about that is signin's; the endpoints that
// programs call are tokenapi's. The pages are small, run no script but the one
// that has the browser make or use a passkey, and look like one sheet of CSS.
//
// The cookies are read here and nowhere else: everything else asks for a bearer
// token.
package signinapi
