// Package messageapi is the HTTP surface that messages go in and out through
// (/admin/rest): producing, consuming and acknowledging them, one by one, in
// batches and as streams.
//
// It owns these paths, headers and bodies. What the calls mean is in messaging;
// how a request finds its cluster and its caller, and how errors leave, is in
// brokerhttp, which it shares with adminapi next door, where tenants,
// namespaces, topics and subscriptions are administered. Calls that are not
// specified are extensions (docs/spec/messages.md#m12): they live beside its
// paths, never change them, and are marked so in api/openapi/messages.yaml.
package messageapi
