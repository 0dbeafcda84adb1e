// Package signin signs people in: passwords, passkeys, invitations, one-time links,
// browser sessions, authorization codes, device codes, and grants with their refresh
// tokens (docs/spec/signin.md).
//
// It owns the stored records (Store) and all decisions about them. It does not serve HTTP
// (internal/surfaces/tokenapi and signinapi do), does not know resources
// (internal/controlplane/kinds/user reports users to the identity.Directory), does not
// check WebAuthn signatures (internal/identity/passkey) and does not call OpenID providers
// (internal/identity/openid). Package identity issues and verifies tokens. A grant is an
// identity.Session there, so the end of the grant ends its tokens immediately.
//
// # Parts
//
// Service has one part for each job and composes them in New. Each part is a field of Service and
// a type with its own file, and depends only on the parts above it in this table:
//
//	part       job
//	Subjects   finds users and accounts and checks that they still exist
//	Sessions   browser sessions, and the end of a session with its grants
//	People     the record of a user: credentials, and the end of a user
//	Links      invitations and the sign-in links of the administrator
//	Passwords  setting and checking passwords
//	Passkeys   adding, using and removing passkeys
//	Grants     grants with their refresh tokens, and the tokens that they get
//	Codes      authorization codes of browsers
//	Devices    device codes of programs without a browser
//
// The parts share one indexedStore, which contains the records. Service itself only starts
// and runs the whole: Load, Run, Reload, and ApplyEnd for other replicas. The surfaces and the kind of
// users get the parts that they use, and never the service.
//
// # Records
//
// Everything is a small record under its own key, replaced by compare and swap. Secrets of
// clients (links, codes, refresh tokens, cookies) are stored as hashes. The key of a record
// that is looked up by such a secret is its hash. A record has an end time; it is not used
// after it, and Run removes it.
//
// # Locks
//
//	lock                     protects
//	indexedStore.mu          index, changed and after
//	People.mu                leaving: users whose records Run has to remove
//	pollLimiter.mu           the times of the last polls of devices
//	hasher.waiting, working  semaphores: how many password hashes may wait and run
//	hasher.known, reserved   the same, for known addresses only
//
// Order: hasher.waiting or known before hasher.working or reserved. No other two are held at the same time.
// indexedStore.mu is not held during calls of the store or the directory.
//
// # Invariants
//
//   - The index contains the records of people, sessions, grants and confirmed devices. The own writes and
//     the watch of the store update it, in any order; the newest revision wins.
//   - Codes, links, refresh tokens and challenges can be used once. The compare and swap
//     of the store decides which request uses them, not a lock.
//   - A confirmed device gets its grant only while the session that confirmed it exists.
//   - A refresh token has a checksum with a key of its grant. Only a token with the right
//     checksum was issued, so only its reuse ends the grant.
//   - When a call returns that ends a grant, its tokens do not work in this process any
//     more, even if the store failed.
package signin
