package identity

import "freshet/internal/errs"

// Why a token or a client was refused. The texts go to callers: they say what
// to do about it and hold nothing of the credential itself.
var (
	ErrNoToken       = errs.New(errs.Unauthenticated, "no token was given")
	ErrInvalidToken  = errs.New(errs.Unauthenticated, "the token is not one that this service issued")
	ErrTokenExpired  = errs.New(errs.Unauthenticated, "the token has expired")
	ErrTokenTooEarly = errs.New(errs.Unauthenticated, "the token is not valid yet")
	ErrWrongAudience = errs.New(errs.Unauthenticated, "the token was issued for another audience")
	ErrAccountGone   = errs.New(errs.Unauthenticated, "the service account of this token no longer exists")
	ErrKeyUnknown    = errs.New(errs.Unauthenticated, "the API key is not known here")
	ErrKeyRevoked    = errs.New(errs.Unauthenticated, "the API key has been revoked")
	ErrInvalidClient = errs.New(errs.Unauthenticated, "unknown client or wrong client secret")
)

// Failures of parsing and of keys at rest.
var (
	ErrInvalidCredentials = errs.New(errs.Invalid, "not a service account credentials file")
	ErrInvalidField       = errs.New(errs.Invalid, "a field has an invalid value")
	ErrUnsealable         = errs.New(errs.Internal, "sealed data cannot be opened")
	ErrSealKeyMissing     = errs.New(errs.Internal, "the key that sealed this data is not in the key file")
	ErrKeysUnavailable    = errs.New(errs.Unavailable, "the signing keys cannot be loaded at the moment")
	ErrKeysChanged        = errs.New(errs.Conflict, "somebody else changed the signing keys first")
	ErrSigningKeyInUse    = errs.New(errs.Precondition, "the signing key is still in use; rotate first")
	ErrSigningKeyUnknown  = errs.New(errs.NotFound, "no such signing key")
	ErrTooManySigningKeys = errs.New(errs.Precondition, "too many retired signing keys; forget old ones first")
)
