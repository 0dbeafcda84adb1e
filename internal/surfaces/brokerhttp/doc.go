// Package brokerhttp is what the two surfaces of docs/spec/messages.md share:
// messageapi, which moves messages, and adminapi, which administers what they
// are in. Both take requests to one cluster's broker.
//
// It owns a request on its way: the cluster it is for, the caller, what the path
// names, the permissions, among them those that the cluster keeps itself, JSON
// bodies, and the one table from errors to a status and {"reason": "..."}. It
// has no paths and no calls; those are the surfaces'. The roles that it asks are
// declared in surface.
package brokerhttp
