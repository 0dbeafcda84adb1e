// Package adminapi is the HTTP surface that administers a cluster: tenants,
// namespaces, topics, subscriptions, policies, topic schemas and statistics in
// the shapes of Pulsar's admin API (/admin/v2), and the topic list
// (/rest-stream/admin/v1).
//
// It owns these paths, their bodies and the permission that each call needs. It
// does not implement the calls: messaging and groups do. pipeline runs the steps of a
// request. brokerhttp has what this surface shares with messageapi, which produces and
// consumes messages. The OpenAPI document of both
// surfaces is api/openapi/messages.yaml; messageapi serves it. The package has no
// locks.
package adminapi
