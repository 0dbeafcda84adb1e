// Package identity authenticates callers. It owns service-account credentials, access
// tokens, API keys (delivered as JWE), sessions of people, signing keys with their JWKS,
// the encryption keys for secrets at rest, and one token verifier for all surfaces.
//
// It does not decide what a caller may do (internal/identity/access), does not serve HTTP
// (internal/surfaces/tokenapi), does not know the resource types and does not reconcile
// them (internal/controlplane/kinds). Package internal/identity/signin signs people in.
//
// # Locks
//
//	lock           protects
//	Directory.mu   the maps, counts and tombstones; writes to the records in them (live,
//	               expected, revoked) and to Directory.refusing
//	Keyring.busy   loads and changes of the signing keys, and the fields missed and
//	               changed. It is a channel of capacity 1, so that waiting for it ends
//	               with the context. It is held during calls of the KeyStore.
//	Sealer.mu      reads and writes of the key file
//	cacheShard.mu  the entries map of one shard of the verifier's token cache
//
// Order: Keyring.busy before Sealer.mu, because a SealedStore may reload the key file
// while the ring loads. No other two locks are held at the same time. Only Keyring.busy is
// held during network calls.
//
// # Invariants
//
//   - The verifier checks a cached token without locks: the fields live and revoked of the
//     records are atomic, the instances that reject API keys (Directory.refusing), the
//     signing keys (Keyring.current) and the encryption keys (Sealer.ring) are immutable
//     values behind atomic pointers. Only a token with an unknown key id waits for
//     Keyring.busy.
//   - A Directory method that deletes or ends a record stores nil into live before it
//     returns. From then on every check of a token that depends on the record fails.
//   - Cache entries are immutable except for the time of their last use, which is atomic,
//     and the sync.Map of principals per data plane.
package identity
