// Package messageapi is the HTTP surface that produces, consumes and acknowledges
// messages (/admin/rest): one by one, in batches and as streams of events.
//
// It owns these paths, headers and bodies. It does not implement the calls: messaging
// does. pipeline runs the steps of a request. brokerhttp has what this surface shares with
// adminapi, which administers tenants, namespaces, topics and subscriptions. Calls that the
// specification does not require are extensions (docs/spec/messages.md#m12): they have paths
// of their own, never change specified calls, and are marked in api/openapi/messages.yaml.
//
// The package has one lock: tickets.mu protects all fields of tickets. No function
// blocks while it holds the lock.
package messageapi
