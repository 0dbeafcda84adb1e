// Package segmentio tests the stream protocol with a client that others wrote:
// segmentio/kafka-go, unmodified. It is a module of its own, so that nothing of
// that client reaches the product.
//
// The tests of the parent folder start a server and say in the environment where
// it is: FRESHET_STREAM, FRESHET_STREAM_TLS, FRESHET_CA and FRESHET_TOKEN.
// TestOrigins also needs the variables of package freshet/test/origins.
package segmentio
