// Package goclient tests the Go client (the module in the folder client) where it needs more
// than that module may depend on. It starts a real server for each package of the client and
// runs the package's tests and examples, kills servers under the client, and compiles the
// example of client/README.md in a module outside the repository, which gets the client from a
// module proxy.
package goclient
