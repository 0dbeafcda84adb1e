// Package identity knows who is calling: service-account credentials, access
// tokens, API keys delivered as JWE, signing keys and their JWKS, and one
// verifier for all surfaces.
//
// It does not decide what a caller may do (that is access), does not speak
// HTTP (that is tokenapi), knows no resources and none of their fields, and does
// not reconcile them (that is controllers/serviceaccount and
// controllers/apikey).
//
// # Locks
//
// No two of these are ever held at once, so there is no order to keep. None is
// held while a request waits for the network but Keyring's.
//
//   - Directory.mu guards its maps, counts and tombstones, and every write to
//     the records they hold, and the set of instances that accept no API keys,
//     which is replaced as a whole and read without the lock. The records' fields that the verifier reads (live,
//     revoked) are atomic: a cached token is checked without the lock. A method
//     that ends a record stores nil into live before it returns, and so the next
//     check of any token that points to it fails.
//   - cacheShard.mu, one for each shard of the verifier's cache, guards the
//     shard's map. Entries are immutable, except for the time of their last use,
//     which is atomic.
//   - Keyring.busy is a lock with a deadline: one load or change of the signing
//     keys at a time, so it is held over calls of the KeyStore. Readers do not
//     take it: the present keys are one immutable value behind an atomic
//     pointer. Only a token that names an unknown key waits for it.
//   - Sealer.mu is held over reading and writing the key file. Readers use the
//     immutable ring behind an atomic pointer.
package identity
