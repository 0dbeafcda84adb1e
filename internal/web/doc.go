// Package web is what Freshet's HTTP surfaces share: handlers that return
// errors, one structured record per request, bounds on bodies and on what all
// requests hold together, Accept lists, credentials out of headers, and CORS.
//
// It knows no surface and no domain. Each surface (messageapi, registryapi,
// tokenapi) brings its own table from errors to its wire form and gives it to
// Handle as an ErrorWriter; server puts Middleware around all of them.
package web
