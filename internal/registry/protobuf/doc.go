// Package protobuf is the registry's knowledge of Protobuf schemas: it parses
// them, prints them in the canonical and the normalized layout, and says how
// two of them differ. It does not decode records.
//
// It owns: the parser's limits, the resolution of imports to references and to
// the built-in files, the printed layouts (docs/spec/registry.md#protobuf-text)
// and the compatibility rules with their wording.
//
// It does not own: subjects, versions, levels and modes (package schemas, next
// door, decides which pairs to compare and in which direction), storage, HTTP.
// Its siblings avro and jsonschema do the same work for their formats.
//
// The pipeline of a parse: text → protocompile's syntax tree → our own small
// model (model.go) → linked by protocompile for its protoc-grade checks, then
// thrown away. Printing and comparing work on the model alone, so that a
// schema imported without link checks can be printed and compared too.
//
// Nothing here touches the file system or the network: the only files there
// are come from the caller's references or from this binary.
package protobuf
