// Package client is the Go client of a Freshet server. This package is for messages and
// topics, package schemas for the schema registry, package resources for the resource API.
//
// A Client is for one server and one of its clusters:
//
//	c, err := client.New(client.Config{
//		BaseURL:     "https://freshet.example.com:8443",
//		TokenSource: client.FileToken("/run/secrets/freshet-key"),
//	})
//
// # Errors
//
// An error response of the server is an *Error with the server's message. errors.Is matches
// it with one of the sentinels (ErrNotFound, ErrDenied, ...). A server that does not respond
// is ErrUnavailable.
//
// # Retries
//
// The client retries calls that failed for a temporary reason a limited number of times, and
// only if that is safe; Client.Do describes the rules. The context limits the total time.
//
// # Compatibility
//
// The module follows semantic versioning and has the version of the server that it is
// released with. A patch release changes no exported name. A minor release before 1.0 may
// remove what an earlier minor release marked as deprecated, and nothing else. New fields of
// structs, new methods and other texts of errors may come with any release. The client works
// with servers of its own minor version, of the two before it and of later ones. README.md
// has the whole promise.
//
// # Locks
//
// Each lock is local to one type and no two are held at the same time, except for those of a
// Producer: Producer.closing before Producer.mu. None is held during a call.
//
//	lock                  protects
//	clientCredentials.mu  the current token and the running request for the next one
//	fileToken.mu          the token and when its file was read; held while reading the file
//	Producer.closing      sending to the queue (read lock) against closing it (write lock)
//	Producer.mu           the counts of pending messages and flushes, and the first error
//	receiver.mu           the held messages and their leases, and the queue of settlements
package client
