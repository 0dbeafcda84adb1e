// Package web is what Freshet's HTTP surfaces share: handlers that return
// errors, one router, one structured record per request, a limiter of what all
// requests hold together, bounds on bodies, Accept lists, credentials out of
// headers, and CORS.
//
// It knows no surface and no domain. Each surface brings its own table from
// errors to its wire form and gives it to Handle as an ErrorWriter; server puts
// Middleware around all of them. Who is calling, what they may do and what is
// written down about it is next door in surface.
package web
