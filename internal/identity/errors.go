package identity

import "freshet/internal/base/errs"

// Why a token or a client was refused. The texts go to callers: they say what
// to do about it and hold nothing of the credential itself.
var (
	ErrNoToken       = errs.New(errs.Unauthenticated, "no token was given")
	ErrInvalidToken  = errs.New(errs.Unauthenticated, "the token is malformed or was not issued by this server")
	ErrTokenExpired  = errs.New(errs.Unauthenticated, "the token has expired")
	ErrTokenTooEarly = errs.New(errs.Unauthenticated, "the token is not valid yet")
	ErrWrongAudience = errs.New(errs.Unauthenticated, "the token was issued for another audience")
	ErrAccountGone   = errs.New(errs.Unauthenticated, "the service account of this token no longer exists")
	ErrUserGone      = errs.New(errs.Unauthenticated, "the user of this token no longer exists")
	ErrSessionEnded  = errs.New(errs.Unauthenticated, "the session of this token has ended: sign in again")
	ErrClientEnded   = errs.New(errs.Unauthenticated,
		"the credentials that this token was issued for have been replaced: get a new token with the new ones")
	ErrKeyUnknown = errs.New(errs.Unauthenticated,
		"the API key is unknown: it was deleted, or issued by another server")
	ErrKeyRevoked     = errs.New(errs.Unauthenticated, "the API key has been revoked")
	ErrKeyNotAccepted = errs.New(errs.Unauthenticated, "this instance does not accept API keys: use an access "+
		"token, or add apikey to spec.auth of the MessagingInstance")
	ErrInvalidClient = errs.New(errs.Unauthenticated, "unknown client or wrong client secret")
)

// Failures of parsing and of keys at rest.
var (
	ErrInvalidCredentials = errs.New(errs.Invalid, "this is not a service account credentials file")
	ErrInvalidInput       = errs.New(errs.Invalid, "an input has an invalid value")
	ErrUnsealable         = errs.New(errs.Internal, "the encrypted data cannot be decrypted")
	ErrSealKeyMissing     = errs.New(errs.Internal, "the encryption key is not in the key file")
	ErrNotCurrent         = errs.New(errs.Unavailable, "this server does not hear at the moment who may still call; "+
		"ask another member of its group, or try again shortly")
	ErrKeysUnavailable    = errs.New(errs.Unavailable, "the signing keys cannot be loaded at the moment")
	ErrKeysChanged        = errs.New(errs.Conflict, "another replica changed the signing keys first")
	ErrSigningKeyUnknown  = errs.New(errs.NotFound, "there is no such signing key")
	ErrTooManySigningKeys = errs.New(errs.Precondition, "there are too many signing keys to add another")
)
