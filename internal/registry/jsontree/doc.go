// Package jsontree is the JSON of the schema languages: a tree that keeps what
// encoding/json drops, namely the order of members and the text of numbers.
//
// It owns reading (Read, bounded in depth and in the number of values and the
// length of numbers), printing (Writer, bounded in depth and in bytes) and the
// order in which Java sorts strings (CompareUTF16). Of several members with one
// key the last decides the value and the first the position, as in the Java
// libraries that other registries run on.
//
// It does not know schemas. What a number means, how a syntax error is worded
// and which limits apply is for its users avro and jsonschema to say, so that
// each keeps the words that its clients know. It imports the standard library
// only.
package jsontree
