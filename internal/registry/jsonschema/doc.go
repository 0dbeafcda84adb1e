// Package jsonschema parses JSON Schema documents of drafts 4, 6, 7, 2019-09
// and 2020-12 for the schema registry, prints their canonical text and
// compares two of them for compatibility.
//
// It owns all of JSON Schema: parsing the text (json.go), resolving $ref (resolve.go), the
// facet model on which compatibility is defined (model.go, extract.go), the rules of
// docs/spec/registry.md#json-compatibility, and the solver that applies them to graphs with
// cycles (rules*.go, solve.go, report.go). It does not validate documents. It never opens a
// file or a socket: a $ref must lead to the schema itself, a registered reference or a
// published metaschema.
//
// It contains nothing about subjects, versions, levels or HTTP: package schemas does, which
// resolves references and calls Parse and Compare. Packages avro and protobuf implement the
// other two languages.
//
// All work is bounded: nesting by maxDepth, text by maxText, the model by maxNodes, a
// comparison by maxPairs and maxWork. Schemas are immutable after Parse and safe for
// concurrent use.
package jsonschema
