// Package brokerhttp is shared by the two surfaces of docs/spec/messages.md:
// messageapi, which produces and consumes messages, and adminapi, which administers
// tenants, namespaces, topics and subscriptions. Both serve requests to one cluster's
// broker.
//
// It owns the state of a request that both share: its cluster, the names in its path, the
// resource that they are authorized on, and its JSON body. It also owns the one table from
// errors to a status and {"reason": "..."}. pipeline runs the steps of a request, and access
// decides permissions. The package has no routes and no handlers; messageapi and adminapi
// have them. It has no locks.
package brokerhttp
