// Package signin is how people prove who they are, and what they have then:
// passwords, invitations, one-time links, sessions of browsers, authorization
// codes, device codes, and grants with their refresh tokens
// (docs/spec/signin.md).
//
// It owns what is stored about all that (Store) and decides from it. It knows no
// HTTP (tokenapi and signinapi speak it), no resources (internal/controlplane/kinds/user tells
// the directory who there is) and no OpenID provider (internal/identity/openid). Tokens are
// made and verified by identity; a grant is a session there, so that whatever ends
// the grant ends its tokens at once.
//
// # Records
//
// Everything is a small record under a key of its own, replaced by compare and
// swap. Secrets that somebody else holds (links, codes, refresh tokens, the value
// of a cookie) are stored as hashes, and the key of a record that is found by such
// a secret is its hash. A record has an end, is not used after it, and is removed
// by a sweep.
//
// # Locks
//
// Service.mu guards index, which is fed by the own writes and by what the store
// tells of other replicas; it is not held over calls of the store. Nothing else is
// locked: what must happen once (a code, a link, a refresh token) is decided by the
// store.
package signin
