// Package names parses and formats names on the wire: tenants, namespaces, topics and their
// partitions, subscriptions, registry subjects and message ids. It also maps a message key to a
// partition, because that depends only on the key and not on the store.
//
// It owns syntax only. Packages broker/messaging and registry/schemas know which objects exist,
// and package engine stores their data. names imports only the standard library, has no locks,
// and does not panic on any input.
package names
