// Package pulsar tests the administration of
// docs/spec/messages.md#administration with a client that others wrote: the
// admin package of apache/pulsar-client-go, unmodified. It is a module of its
// own, so that nothing of that client reaches the product.
//
// It runs the binary that FRESHET_BIN names, or builds one.
package pulsar
