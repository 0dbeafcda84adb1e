// Package protobuf implements Protobuf for the schema registry: it parses schemas, prints
// them in the canonical and the normalized layout, and compares two of them. It does not
// decode records.
//
// It owns the parser's limits, the resolution of imports to references and built-in files,
// the printed layouts (docs/spec/registry.md#protobuf-text), and the compatibility rules
// with their wording.
//
// It does not own subjects, versions, levels and modes (package schemas decides which pairs
// to compare and in which direction), storage, or HTTP. Packages avro and jsonschema
// implement the other two languages.
//
// Parsing works in these steps: text → protocompile's syntax tree → the model (model.go) →
// linking by protocompile, which does the checks of protoc; its result is discarded.
// Printing and comparing use only the model, so that schemas that were imported without
// checks can be printed and compared too.
//
// The package does not access the file system or the network: all files come from the
// caller's references or from this binary.
package protobuf
