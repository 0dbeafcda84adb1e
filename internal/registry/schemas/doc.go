// Package schemas is the domain of the schema registry: subjects, versions,
// ids, compatibility levels, the mode, and references between schemas.
//
// It owns the rules of docs/spec/registry.md and the state that follows from
// them: the id and version of each registration, the conditions of a deletion,
// the versions that a new schema is checked against, and the text of every
// error. The neighbouring packages avro, jsonschema and protobuf parse, print
// and compare schemas; they do not use subjects. Package statemachine makes
// records durable in an engine.Journal and replicates them. HTTP, status codes
// and permissions belong to package registryapi.
//
// # Locks
//
// The package has no lock of its own. It uses these:
//
//	Machine.writing  of statemachine, the write lock. The decision functions
//	                 that this package passes to the machine run while it is
//	                 locked. They get the newest state and return the records
//	                 to append.
//	Cache.mu         of lru, for parsed schemas. A leaf.
//	Pool.mu          of workpool, for the permits of costly work. A leaf.
//	quota            has its own locks. Quota is reserved before the write lock
//	                 is taken, and released after it.
//
// # Invariants
//
//  1. A published state is immutable, and so are its subjects and schemas.
//     Reads use it without a lock. The only exception is Schema.recordNames,
//     which is atomic and set once its value is computed.
//  2. A schema is parsed and checked before the write lock is taken. The
//     decision in the lock uses the result only if the mode, the subject and
//     the targets of the references are unchanged; otherwise the registration
//     is repeated (errStale).
//  3. Work in the write lock never waits for a permit and is limited to small
//     work (inLock); larger work returns errStale.
//  4. An id is bound to one content. Ids up to lastID are never assigned again,
//     except by an import, which provides its own ids.
package schemas
