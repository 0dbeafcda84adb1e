// Package schemaimport copies the schemas of another registry (Confluent Schema Registry, Karapace,
// Apicurio's compatible API, or another Freshet cluster) into the registry of a cluster, over the HTTP
// interface that all of them have. It keeps ids, version numbers, references, soft deletions and
// compatibility levels, and it only reads from the source.
//
// It holds the names and version numbers of all subjects in memory, and the texts of a few schemas at a
// time. An import can be repeated after an error: what the target already has is skipped.
//
// Files of `freshet schema export` are the concern of client/schemas; flags and output are those of
// package schemacmd. The package has no locks: each Import belongs to one goroutine, and its requests to
// the source return their results over channels.
package schemaimport
