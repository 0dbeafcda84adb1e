// Package client talks to a Freshet server: messages and topics here, schemas in
// client/schemas, resources in client/resources.
//
// A Client belongs to one server and one cluster of it:
//
//	c, err := client.New(client.Config{
//		BaseURL:     "https://freshet.example.com:8443",
//		TokenSource: client.FileToken("/run/secrets/freshet-key"),
//	})
//
// # Errors
//
// What the server refuses is an *Error with the server's own sentence, and one of
// the sentinels (ErrNotFound, ErrDenied, ...) by errors.Is. A server that does not
// answer is ErrUnavailable.
//
// # What is repeated
//
// Calls that failed for a passing reason are repeated a bounded number of times,
// and only where that is safe; Client.Do says exactly what that means. The context
// bounds the whole.
package client
