// Package clients holds tests that drive the registry with clients other people
// wrote: franz-go's sr package, the commercial registry's Go client and
// serializers (a module of its own, since they need cgo), and two Node clients.
//
// FRESHET_URL and FRESHET_TOKEN point them at a server; without these they run
// against a registry in this process. Those that need a C compiler or Node run
// when FRESHET_TEST_CLIENTS is set, since they take minutes to fetch and build.
package clients
