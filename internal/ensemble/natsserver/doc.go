// Package natsserver runs an embedded NATS server with JetStream, the replicated
// log of a group of members, and connects to it.
//
// It owns the server's life: start, ready, health, close. What streams there are
// and what is in them is the business of engine/jetstream and engine/replicated.
//
// There is no listener for clients at all: connections are made inside the
// process (Connect). A server that has peers listens for them alone, and takes
// and makes routes only with mutual TLS: whoever holds a certificate of the
// group's authority is a member, and whoever does not is nobody.
//
// Every write is synced before it counts, on each server: an acknowledged
// publish survives the loss of power on all of them at once. A stream with three
// replicas acknowledges when two have it on disk.
package natsserver
