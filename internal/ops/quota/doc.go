// Package quota enforces the limits of organizations and of single clusters: numbers of
// resources, stored bytes, and rates of requests and bytes.
//
// It owns limits, reservations and rates. It does not count resources itself: their
// owners report the counts (Cluster.SetCounter, Organization.Create), so that counts survive
// restarts and cannot drift. Only client state in memory, which its owners count again after a
// start, is counted here (Cluster.ReserveState). docs/spec/resources.md#quotas defines what counts. Surfaces
// map the errors: Exhausted is 403, Throttled is 429 with Retry-After.
//
// Locks:
//
//	Organizations.mu               the configured limits
//	Organization.createSemaphores  one semaphore each for clusters and instances, held from
//	                               Create until done is called
//	Organization.mu                the reservations of the organization and its clusters, the
//	                               client state of its clusters, and writes to the list of
//	                               clusters
//
// No function of this package takes two of them. With Organization.mu held, Reserve calls
// the functions of Cluster.SetCounter, and ReserveState those of a StateCounter; they must be fast and
// must not call this package. Rates and pending stored bytes are atomics, because every message uses them.
// The list of clusters is copied on write, so that readers take no lock.
package quota
