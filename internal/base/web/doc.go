// Package web has the HTTP code that Freshet's surfaces share: handlers that return
// errors, a router, one log record per request, a limiter for concurrent requests and
// the memory of their bodies, limits on bodies, Accept lists, credentials in headers,
// and CORS.
//
// It depends on no surface and no domain. Each surface passes its own table from errors
// to responses to Handle as an ErrorWriter; server wraps all surfaces with Middleware.
// Authentication, authorization and audit records are in surfaces/pipeline.
//
// Locks:
//
//	FairSemaphore.mu  all mutable fields of a FairSemaphore, its organizations, principals and waiters
//	lineLimiter.mu    the counters of one AccessLog
//
// No function takes both. The channel of a queued waiter is closed exactly once, with
// FairSemaphore.mu held: when the waiter gets its units. The sum of all held units is
// FairSemaphore.used, and it never exceeds FairSemaphore.capacity.
package web
