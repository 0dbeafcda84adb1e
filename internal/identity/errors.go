package identity

import "freshet/internal/base/errs"

// Errors of authentication. Callers see the texts, so these contain nothing of the
// credential itself.
var (
	ErrNoToken             = errs.New(errs.Unauthenticated, "no token was given")
	ErrInvalidToken        = errs.New(errs.Unauthenticated, "token is malformed or was not issued by this server")
	ErrTokenExpired        = errs.New(errs.Unauthenticated, "token has expired")
	ErrTokenTooEarly       = errs.New(errs.Unauthenticated, "token is not valid yet")
	ErrWrongAudience       = errs.New(errs.Unauthenticated, "token was issued for another audience")
	ErrAccountGone         = errs.New(errs.Unauthenticated, "service account of this token no longer exists")
	ErrUserGone            = errs.New(errs.Unauthenticated, "user of this token no longer exists")
	ErrSessionEnded        = errs.New(errs.Unauthenticated, "session of this token has ended; sign in again")
	ErrCredentialsReplaced = errs.New(errs.Unauthenticated,
		"credentials of this token have been replaced; request a token with the new credentials")
	ErrSourceEnded = errs.New(errs.Unauthenticated,
		"credential with which this token was requested is no longer valid; request a token with another one")
	ErrManySources = errs.Newf(errs.Denied, "token would depend on more than %d credentials, because it was "+
		"requested with a token of a token; request it with an earlier credential", maxSources)
	ErrKeyUnknown = errs.New(errs.Unauthenticated,
		"API key is unknown: it was deleted, or issued by another server")
	ErrKeyRevoked     = errs.New(errs.Unauthenticated, "API key has been revoked")
	ErrKeyNotAccepted = errs.New(errs.Unauthenticated, "instance does not accept API keys; use an access token, "+
		"or add apikey to spec.auth of the MessagingInstance")
	ErrInvalidClient = errs.New(errs.Unauthenticated, "unknown client or wrong client secret")
)

// Errors of parsing and of stored keys.
var (
	ErrInvalidCredentials = errs.New(errs.Invalid, "not a service account credentials file")
	ErrInvalidInput       = errs.New(errs.Invalid, "input has an invalid value")
	ErrUnsealable         = errs.New(errs.Internal, "encrypted data cannot be decrypted")
	ErrSealKeyMissing     = errs.New(errs.Internal, "encryption key is not in the key file")
	ErrNotCurrent         = errs.New(errs.Unavailable, "this server does not receive changes from the ensemble at the "+
		"moment, so it cannot check credentials; call another member, or retry shortly")
	ErrKeysUnavailable    = errs.New(errs.Unavailable, "signing keys cannot be loaded at the moment")
	ErrKeysChanged        = errs.New(errs.Conflict, "another replica changed the signing keys first")
	ErrSigningKeyUnknown  = errs.New(errs.NotFound, "signing key does not exist")
	ErrTooManySigningKeys = errs.New(errs.Precondition, "too many signing keys exist; withdraw some")
)
