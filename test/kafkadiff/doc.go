// Package kafkadiff compares the server with Apache Kafka: its test sends the same requests,
// valid and invalid, in every version that both advertise, to Kafka and to freshet, and
// compares the responses field by field. Ids, times and addresses are normalised first.
//
// A difference is a fault unless the table in allowed_test.go lists it with the decision
// that explains it. A row of that table that explains nothing is an error too, so the table
// is the complete list of the known differences.
//
// Tests of single APIs belong to package kafkaapi, tests with real clients to test/clients.
package kafkadiff
