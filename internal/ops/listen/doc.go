// Package listen owns the ports of the server: it opens them, divides the limit of open files
// between connections and stores, reads the PROXY protocol of trusted proxies, does TLS
// handshakes, and drains the connections when the server stops. What is served is the business
// of the caller; certificates come from package certificates.
//
// # Locks
//
//	lock    protects
//	Limit   semaphore: open connections of one listener, or of all
//
// Order: the Limit of a listener before the one of all listeners. A Limit is held as long as
// its connection is open.
package listen
