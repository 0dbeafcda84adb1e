// Package apikey is the kind APIKey: what it is (kind.go), what it may say
// (validate.go), how its token is made (issue.go), how its end is told
// (status.go, reconcile.go), and how identity hears of it (feed.go).
//
// A key whose account exists is issued while it is created, so the answer to
// the create call already holds the encrypted token; a key that came before its
// account is issued when the account turns up. The directory is told in the
// store's write path, so a key works when it says Issued and is dead when the
// revoking call returns. Tokens and their encryption are identity's business;
// the account lives next door, in ../serviceaccount.
package apikey
