// Package names parses and prints what things are called on the wire: tenants,
// namespaces, topics and their partitions, subscriptions, registry subjects
// and message ids. It also decides which partition a key belongs to, since
// that is a property of the name and not of any store.
//
// It owns syntax only. Whether a thing exists is the business of messaging and
// schemas, and what bytes are kept under a name that of engine. It imports the
// standard library alone, and no input can make it panic.
package names
