// Package java drives the real binary with software for the Java virtual machine
// that others wrote: the Kafka clients of two generations, the command line tools,
// Connect, Streams, and a registry's serializers. `make test-java` fetches them and
// runs these tests; without it they are left out and say NOT TESTED.
//
// client has programs for every generation of clients, newest those for the newest
// alone, programs those for Streams and Avro. The poms pin versions. At most two virtual
// machines run at a time, each with a heap of 256 MiB at most. What reads several topics
// at once (client/Origins.java, programs/Join.java) also runs against an ensemble.
package java
