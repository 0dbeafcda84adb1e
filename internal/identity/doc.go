// Package identity knows who is calling: service-account credentials, access
// tokens, API keys delivered as JWE, signing keys and their JWKS, and one
// verifier for all surfaces.
//
// It does not decide what a caller may do (that is access), does not speak
// HTTP (that is tokenapi) and does not reconcile resources (that is
// controllers/serviceaccount and controllers/apikey).
package identity
