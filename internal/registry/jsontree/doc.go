// Package jsontree is the JSON parser and printer of the schema languages. Its tree keeps
// what encoding/json drops: the order of members and the text of numbers.
//
// It owns reading (Read, bounded in depth, in the number of values and in the length of
// numbers), printing (Writer, bounded in depth and in bytes) and the order in which Java
// sorts strings (CompareUTF16). If a key occurs several times, the last occurrence
// determines the value and the first the position, as in the Java libraries of Confluent
// Schema Registry.
//
// It contains nothing about schemas. Its users avro and jsonschema interpret numbers, word
// the syntax errors and set the limits, because their clients expect different error texts.
// It imports only the standard library.
package jsontree
