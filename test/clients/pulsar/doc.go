// Package pulsar tests the administration API of docs/spec/messages.md#administration with
// an unmodified third-party client: the admin package of apache/pulsar-client-go. It is a
// separate module, so that the product does not depend on it.
//
// It runs the binary that FRESHET_BIN names, or builds one.
package pulsar
