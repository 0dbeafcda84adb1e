// Package adminapi is the HTTP surface that administers a cluster: tenants,
// namespaces, topics, subscriptions, policies, topic schemas and statistics in
// the shapes of Pulsar's admin API (/admin/v2), and the topic list
// (/rest-stream/admin/v1).
//
// It owns these paths, their bodies and which permission a call needs. What the
// calls mean is in messaging; how a request finds its cluster and its caller,
// and how errors leave, is in brokerhttp, which it shares with messageapi next
// door, where the messages themselves go in and out. The OpenAPI document of
// both is api/openapi/messages.yaml, which messageapi serves.
package adminapi
