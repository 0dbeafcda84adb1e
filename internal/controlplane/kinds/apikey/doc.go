// Package apikey is the kind APIKey: its definition (kind.go), validation (validate.go), issuing of
// tokens (issue.go), conditions (status.go, reconcile.go), warnings about revocation
// (revocation.go), and the synchronization with the identity directory (feed.go).
//
// A key whose account exists is issued while it is created, so the response to the create call
// already contains the encrypted token. A key that was created before its account is issued when
// the account is created. The store's write path updates the directory, so a key works when its
// status shows Issued, and is rejected when the revoking call returns. Package identity owns tokens
// and their encryption; ../serviceaccount owns the accounts.
package apikey
