// Package apikey issues, expires and ends API keys.
//
// A key whose account exists is issued while it is created (issue.go), so the
// answer to the create call already holds the encrypted token; a key that came
// before its account is issued when the account turns up (controller.go). The
// directory is told in the store's write path, so a key works when it says
// Issued and is dead when the revoking call returns. Tokens and their
// encryption are identity's business.
package apikey
