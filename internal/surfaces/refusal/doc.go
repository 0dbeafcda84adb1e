// Package refusal rejects requests that no surface handles: malformed HTTP, and every request
// while the server starts or has no majority. The error responses have the format of the
// surface of the path, which the caller passes as a handler; the health pages have their own.
// Package base/web defines what a refusal is. The package has no locks: a connection's state
// is used by net/http in one goroutine at a time, or is atomic.
package refusal
