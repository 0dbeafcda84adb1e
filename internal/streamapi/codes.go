package streamapi

// Error codes of the protocol.
const (
	codeUnknownServerError       int16 = -1
	codeNone                     int16 = 0
	codeUnsupportedSASLMechanism int16 = 33
	codeIllegalSASLState         int16 = 34
	codeUnsupportedVersion       int16 = 35
	codeInvalidRequest           int16 = 42
	codeSASLAuthenticationFailed int16 = 58
)
