// Package java tests the real binary with third-party Java software: Kafka clients of two
// major versions, the command line tools, Connect, Streams, MirrorMaker 2 between an Apache
// Kafka broker and a server, and Confluent's serializers.
// `make test-java` downloads them and runs these tests; otherwise the tests are skipped and
// print NOT TESTED.
//
// Folder client has programs for all client versions, newest those for the newest version
// only, programs those for Streams and Avro. The poms pin versions. At most two Java virtual
// machines run at a time, each with a heap of at most 256 MiB. The programs that read several
// topics concurrently (client/Origins.java, programs/Join.java) also run against an ensemble.
package java
