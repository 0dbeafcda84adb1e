// Package brokerhttp is shared by the two surfaces of docs/spec/messages.md:
// messageapi, which produces and consumes messages, and adminapi, which administers
// tenants, namespaces, topics and subscriptions. Both serve requests to one cluster's
// broker.
//
// It owns the state of a request: its cluster, its caller, the names in its path, the
// authorization (including the permissions that the cluster itself stores) and its JSON
// body. It also owns the one table from errors to a status and {"reason": "..."}. It
// has no routes and no handlers; messageapi and adminapi have them. Resolver,
// Authenticator, Authorizer and Auditor are declared in pipeline. The package has no
// locks.
package brokerhttp
