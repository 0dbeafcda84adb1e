// Package web has the HTTP code that Freshet's surfaces share: handlers that return
// errors, a router, one log record per request, a limiter for concurrent requests and
// the memory of their bodies, limits on bodies, Accept lists, credentials in headers,
// and CORS.
//
// It depends on no surface and no domain. Each surface passes its own table from errors
// to responses to Handle as an ErrorWriter; server wraps all surfaces with Middleware.
// Authentication, authorization and audit records are in surfaces/pipeline.
//
// It has no locks: fairshare and lograte count for Limiter and AccessLog.
package web
