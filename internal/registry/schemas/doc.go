// Package schemas is the domain of the schema registry: subjects, versions,
// ids, compatibility levels, the mode, and references between schemas.
//
// It owns the rules of docs/spec/registry.md and the state machine that keeps
// them: which registration gets which id and version, what may be deleted when,
// which versions a new schema is checked against, and the exact words of every
// refusal. The three sub-packages avro, jsonschema and protobuf parse, print
// and compare; they know nothing of subjects. Making records durable and
// agreeing with other replicas is replica's work, over a journal of engine.
// HTTP, status codes and permissions are next door, in registryapi.
//
// Reads come from memory. Parsing and checking happen before the write lock is
// taken, and are repeated only when the subject changed in between.
package schemas
