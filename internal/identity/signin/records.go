package signin

import (
	"time"

	"freshet/internal/identity"
)

// Subject is the owner of a record: a user, or, if Account is set, a service account whose
// owner signed in with a one-time link.
type Subject struct {
	Organization string `json:"organization"`
	User         string `json:"user,omitempty"`
	Account      string `json:"account,omitempty"`
	UID          string `json:"uid"`
	Email        string `json:"email,omitempty"`    // of the user, at the time of authentication
	ClientID     string `json:"clientID,omitempty"` // of the account, at the time of authentication
}

// person contains the credentials of a user. They are valid for one e-mail address, because
// a user with another address is not the one who set them.
type person struct {
	Subject    Subject    `json:"subject"`
	Password   string     `json:"password,omitempty"` // from hasher.hash
	Passkeys   []Passkey  `json:"passkeys,omitempty"`
	Invitation invitation `json:"invitation,omitzero"`
	Begun      time.Time  `json:"begun"` // time of the last write

	// Since is when the user first had a password. It is the zero time if that was with an
	// earlier version. Of several users with one e-mail address, the first may sign in with it.
	Since time.Time `json:"since,omitzero"`
	// Known are addresses from which the user has signed in, the last one first.
	Known []knownAddress `json:"known,omitempty"`
}

// knownAddress is an address from which a user has signed in.
type knownAddress struct {
	Address string    `json:"address"`
	Used    time.Time `json:"used"` // with a precision of addressPrecision
}

// invitation is the valid invitation link of a user.
type invitation struct {
	Hash string    `json:"hash"` // of the link's token
	By   string    `json:"by"`   // principal
	Ends time.Time `json:"ends"`
}

// link is a one-time link: an invitation of a user, or a sign-in link of an account.
type link struct {
	Subject Subject   `json:"subject"`
	Begun   time.Time `json:"begun"`
	Ends    time.Time `json:"ends"`
}

// session is a browser session.
type session struct {
	Subject Subject   `json:"subject"`
	Hash    string    `json:"hash"` // of the secret part of the cookie
	Method  string    `json:"method"`
	Begun   time.Time `json:"begun"`
	Ends    time.Time `json:"ends"`
}

// grant is a grant of a client, with its current refresh token.
type grant struct {
	Subject Subject   `json:"subject"`
	Client  string    `json:"client"`
	Session string    `json:"session,omitempty"` // browser session with which the grant ends; "" for devices
	Hash    string    `json:"hash"`              // of the current refresh token
	Begun   time.Time `json:"begun"`
	Ends    time.Time `json:"ends"`
	// Before is the hash of the previous refresh token, which was exchanged at Renewed.
	// successor computes the current token from the previous one and Salt.
	Before  string    `json:"before,omitempty"`
	Salt    string    `json:"salt,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
	// Family is the key of the checksums in the refresh tokens of this grant, with which an
	// old token is distinguished from a made-up one. It is empty in grants of earlier versions until
	// their next renewal.
	Family string `json:"family,omitempty"`
}

// code is an authorization code. A used code is kept until it expires, so that a second use
// is detected.
type code struct {
	Subject   Subject   `json:"subject"`
	Client    string    `json:"client"`
	Session   string    `json:"session"`
	Redirect  string    `json:"redirect"`
	Challenge string    `json:"challenge"`
	Nonce     string    `json:"nonce,omitempty"`
	Begun     time.Time `json:"begun"` // when the user authenticated
	Ends      time.Time `json:"ends"`
	Grant     string    `json:"grant,omitempty"` // the grant for which it was used
}

// device is a device that waits for the confirmation of its sign-in.
type device struct {
	Client   string    `json:"client"`
	UserCode string    `json:"word"`
	Address  string    `json:"address"` // of the device
	Begun    time.Time `json:"begun"`
	Ends     time.Time `json:"ends"`
	Subject  Subject   `json:"subject,omitzero"`  // the user who confirmed the sign-in
	Session  string    `json:"session,omitempty"` // browser session of the confirmation, with which it ends
	Denied   bool      `json:"denied,omitempty"`
	Grant    string    `json:"grant,omitempty"` // the grant that the device got
}

// userCode maps a user code to its device.
type userCode struct {
	Device string    `json:"device"` // the key of its record
	Ends   time.Time `json:"ends"`
}

// ends is the part of a record that Sweep needs; all records except for those of people
// have it.
type ends struct {
	Ends time.Time `json:"ends"`
}

// maxToken bounds the size of tokens from clients, in bytes.
const maxToken = 256

// hashOf returns the stored form of a client's secret. Such secrets have 32 random bytes,
// so a plain hash is enough.
func hashOf(token string) string { return identity.HashToken(identity.NewSecret(token)) }
