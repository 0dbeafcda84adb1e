// Package avro owns everything the registry and the topic schemas need to
// know about Avro: parsing a definition with the rules Java's library applies
// to a new schema, printing the text under which a schema is stored, and
// deciding whether one schema can read what another has written.
//
//   - Parse, Canonical, Normalized and Resolved follow Java's Schema.Parser and
//     Schema.toString, because clients compare schema texts byte for byte.
//   - Check follows Java's SchemaCompatibility: same verdicts, same problem
//     types, same messages and paths, in the same order.
//   - Changes lists all differences of two schemas, for people to read.
//   - DecodeDatum and ValidateJSON tell whether a message fits a schema.
//
// Every entry point is bounded in depth, size and work: no text, pair of texts
// or datum can overflow the stack or burn a core.
//
// The package knows nothing of subjects, versions, levels, storage or HTTP:
// that is package schemas, its parent. Its siblings jsonschema and protobuf do
// the same work for the other two formats; the JSON that it shares with the
// first is package jsontree.
package avro
