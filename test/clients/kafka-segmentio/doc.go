// Package segmentio tests the Kafka protocol with an unmodified third-party client,
// segmentio/kafka-go. It is a separate module, so that the product does not depend on it.
//
// The tests of the parent folder start a server and pass its address in the environment:
// FRESHET_STREAM, FRESHET_STREAM_TLS, FRESHET_CA and FRESHET_TOKEN. TestOrigins also needs
// the variables of package freshet/test/origins.
package segmentio
