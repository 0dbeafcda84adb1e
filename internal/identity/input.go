package identity

// Input is an argument that a caller got from outside. Which field of a resource
// it came from is the caller's to know.
type Input string

// The inputs of ParseEncryptionKey and of Issuer.APIKey.
const (
	InputPEM       Input = "PEM"
	InputJWK       Input = "JWK"
	InputPEMAndJWK Input = "PEM and JWK"
	InputExpiresAt Input = "expiry"
	InputMetadata  Input = "metadata"
)

// InputError says which input is wrong, and why.
type InputError struct {
	Input  Input
	Detail string // continues a sentence that begins with the field: "must be in the future"
}

// Error names the input.
func (e *InputError) Error() string { return string(e.Input) + ": " + e.Detail }

// Unwrap makes the error an ErrInvalidInput, of kind Invalid.
func (e *InputError) Unwrap() error { return ErrInvalidInput }
