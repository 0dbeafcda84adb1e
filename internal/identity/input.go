package identity

// Input is an argument with user input. The caller maps it to the field of a resource.
type Input string

// Inputs of ParseEncryptionKey and Issuer.APIKey.
const (
	InputPEM       Input = "PEM"
	InputJWK       Input = "JWK"
	InputPEMAndJWK Input = "PEM and JWK"
	InputExpiresAt Input = "expiry"
	InputMetadata  Input = "metadata"
)

// InputError reports an invalid input.
type InputError struct {
	Input  Input
	Detail string // continues a sentence that starts with the field: "must be in the future"
}

// Error returns the input and the detail.
func (e *InputError) Error() string { return string(e.Input) + ": " + e.Detail }

// Unwrap makes the error an ErrInvalidInput, of kind Invalid.
func (e *InputError) Unwrap() error { return ErrInvalidInput }
