// Package clients tests the server with third-party clients. Registry: franz-go's sr
// package, Confluent's Go client and serializers (a separate module, because they need
// cgo), and two Node clients. Resources: the official Kubernetes clients for Python and
// JavaScript. Kafka: franz-go, Sarama, segmentio/kafka-go, librdkafka through its Go
// module, its Python wheel and kcat, kafka-python, aiokafka and KafkaJS, all of them
// against one real server (TestKafkaClients). Each Kafka client also reads many topics
// with one consumer, and package origins checks that every record belongs to the partition
// that the client reports.
//
// FRESHET_SERVER and FRESHET_TOKEN select the server of the registry tests; without them the
// tests use a registry in this process. Tests that need a C compiler, Node or Python run
// only if FRESHET_TEST_CLIENTS is set, because downloading and building takes minutes. A
// skipped test prints NOT TESTED and the reason.
package clients
