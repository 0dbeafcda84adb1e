// Package jsonschema parses JSON Schema documents of drafts 4, 6, 7, 2019-09
// and 2020-12 for the schema registry, prints their canonical text and
// compares two of them for compatibility.
//
// It owns the whole of JSON Schema: reading the text (json.go), finding what
// a $ref means (resolve.go), the facet model that compatibility is defined on
// (model.go, extract.go), the rules of docs/spec/registry.md#json-compatibility
// and the solver that applies them to graphs with cycles (rules*.go, solve.go,
// report.go). It does not judge documents by a schema. It never opens a file or
// a socket: what is not in the schema, not a registered reference and not one
// of the published metaschemas does not exist.
//
// It does not know subjects, versions, levels or HTTP: that is package
// schemas, which resolves references and asks Parse and Compare. The other two
// formats live next door in packages avro and protobuf.
//
// Everything here is bounded: nesting by maxDepth, text by maxText, a
// comparison by maxPairs and compareTime. Schemas are immutable after Parse and
// safe for concurrent use.
package jsonschema
