// Package natsserver provides the replicated log of an ensemble: an embedded NATS server
// with JetStream in each member (Server), or a connection to external NATS servers (Remote).
//
// The package owns the server's lifecycle: start, readiness, health, restart after a disk
// failure, shutdown. Packages journal and replicated own the streams and their content. It also
// reports the replicas of every stream (Report), and combines the reports of all servers (Tracker).
//
// The embedded server has no listener for clients: clients connect inside the process
// (Connect). A server with peers listens for routes only, and accepts and opens routes only
// with mutual TLS under the ensemble's certificate authority.
//
// Every server syncs each write before it acknowledges the write, so an acknowledged
// message survives a simultaneous power loss of all servers. A stream with three replicas
// acknowledges when two have the message on disk.
//
// A server verifies its files before it starts (files.go, package natsfiles). If they are
// damaged, it forgets them and rejoins the others, when all of them have all records
// (rejoin.go). While it runs, it records what its logs contain (floors.go), and verifies its
// files again (suspect.go).
//
// # Locks
//
//	Server.mu  conns. Never held over a call.
//
// Server.started, opts, running, examined, foundIntact, healthy and floors belong to Start, and afterwards to
// the watch goroutine, which also calls launch. Close reads them after that goroutine has ended.
// Server.nats, rejoining and waiting are atomic, because watch changes them while other
// goroutines use them.
package natsserver
