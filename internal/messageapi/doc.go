// Package messageapi is the HTTP surface of spec 2: producing, consuming and
// acknowledging messages (/admin/rest), the administration of tenants,
// namespaces, topics, subscriptions and topic schemas in the shapes of
// Pulsar's admin API (/admin/v2), and the topic list (/rest-stream).
//
// It owns paths, headers, bodies and status codes, and the one table from
// errors to them. What the calls mean is next door in messaging; who is calling
// and what they may do is asked of identity and access; which cluster a request
// is for is asked of a Resolver. Calls that spec 2 does not have are extensions:
// they live beside its paths, never change them, and are marked so in
// api/openapi/messages.yaml.
package messageapi
