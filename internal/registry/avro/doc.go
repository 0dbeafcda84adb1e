// Package avro implements Avro for the schema registry and for topic schemas: it parses a
// schema by the rules that Avro's Java library applies to a new schema, prints the text
// under which a schema is stored, and checks whether one schema can read data of another.
//
//   - Parse, Canonical, Normalized and Resolved follow Java's Schema.Parser and
//     Schema.toString, because clients compare schema texts byte for byte.
//   - Check follows Java's SchemaCompatibility: same verdicts, same problem
//     types, same messages and paths, in the same order.
//   - Changes lists all differences of two schemas, for users.
//   - DecodeDatum and ValidateJSON check whether a message matches a schema.
//   - Value reads parts of a datum, and skips the others.
//
// Every entry point is bounded in depth, size and work: no text, pair of texts or datum can
// overflow the stack or use a processor for long.
//
// The package contains nothing about subjects, versions, levels, storage or HTTP: package
// schemas does. Packages jsonschema and protobuf implement the other two languages; jsontree
// is the JSON parser that avro shares with jsonschema.
package avro
