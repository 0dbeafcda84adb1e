// Package clients holds tests that drive the server with clients other people
// wrote. The registry: franz-go's sr package, the commercial registry's Go client
// and serializers (a module of its own, since they need cgo), and two Node
// clients. Resources: the official Kubernetes clients of Python and JavaScript. The
// stream protocol: franz-go, Sarama, segmentio/kafka-go and librdkafka through its Go
// module, its Python wheel and kcat; kafka-python, aiokafka and KafkaJS; all of them
// against one real server (TestStreamClients). Each of them also reads many topics with one
// consumer, and package origins checks that every record is of the partition that the client
// reports.
//
// FRESHET_URL and FRESHET_TOKEN point those of the registry at a server; without
// these they run against a registry in this process. Those that need a C compiler,
// Node or Python run when FRESHET_TEST_CLIENTS is set, since they take minutes to
// fetch and build. What is left out says NOT TESTED, and why.
package clients
