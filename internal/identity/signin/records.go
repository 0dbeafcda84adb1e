package signin

import (
	"time"

	"freshet/internal/identity"
)

// Subject is whose something is: a person, or with Account an account whose owner
// came by a one-time link.
type Subject struct {
	Organization string `json:"organization"`
	User         string `json:"user,omitempty"`
	Account      string `json:"account,omitempty"`
	UID          string `json:"uid"`
	Email        string `json:"email,omitempty"`    // of the person, when they proved who they are
	ClientID     string `json:"clientID,omitempty"` // of the account then
}

// person is what is known about how somebody can sign in. It is good for one
// address: whoever has another is not the one who set the password.
type person struct {
	Subject    Subject    `json:"subject"`
	Password   string     `json:"password,omitempty"` // as hasher makes it
	Passkeys   []Passkey  `json:"passkeys,omitempty"`
	Invitation invitation `json:"invitation,omitzero"`
	Begun      time.Time  `json:"begun"` // when it was written
}

// invitation is the one link that is good for a person.
type invitation struct {
	Hash string    `json:"hash"` // of the link's token
	By   string    `json:"by"`   // principal
	Ends time.Time `json:"ends"`
}

// link is a one-time link: an invitation, or of an account.
type link struct {
	Subject Subject   `json:"subject"`
	Begun   time.Time `json:"begun"`
	Ends    time.Time `json:"ends"`
}

// session is a browser in which somebody has signed in.
type session struct {
	Subject Subject   `json:"subject"`
	Hash    string    `json:"hash"` // of the secret half of the cookie
	Method  string    `json:"method"`
	Begun   time.Time `json:"begun"`
	Ends    time.Time `json:"ends"`
}

// grant is what a client got for somebody: refresh tokens, one after the other, and
// the access tokens that are made of them.
type grant struct {
	Subject Subject   `json:"subject"`
	Client  string    `json:"client"`
	Session string    `json:"session,omitempty"` // the browser's, with which it ends; "" for devices
	Hash    string    `json:"hash"`              // of the refresh token that is good now
	Begun   time.Time `json:"begun"`
	Ends    time.Time `json:"ends"`
	// Before is the hash of the refresh token that was exchanged for this one, at
	// Renewed. With Salt the one follows from the other (successor).
	Before  string    `json:"before,omitempty"`
	Salt    string    `json:"salt,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
}

// code is an authorization code. One that was used is kept until its end, so that
// a second use ends what came of the first.
type code struct {
	Subject   Subject   `json:"subject"`
	Client    string    `json:"client"`
	Session   string    `json:"session"`
	Redirect  string    `json:"redirect"`
	Challenge string    `json:"challenge"`
	Nonce     string    `json:"nonce,omitempty"`
	Begun     time.Time `json:"begun"` // when the person proved who they are
	Ends      time.Time `json:"ends"`
	Grant     string    `json:"grant,omitempty"` // what it was used for
}

// device is a device that waits for somebody to say whose it is.
type device struct {
	Client  string    `json:"client"`
	Word    string    `json:"word"`
	Address string    `json:"address"` // of the device
	Begun   time.Time `json:"begun"`
	Ends    time.Time `json:"ends"`
	Subject Subject   `json:"subject,omitzero"` // who said so
	Denied  bool      `json:"denied,omitempty"`
	Grant   string    `json:"grant,omitempty"` // what it was used for
}

// word leads from what a person types to the device.
type word struct {
	Device string    `json:"device"` // the key of its record
	Ends   time.Time `json:"ends"`
}

// ends is for the sweep: every record but those of people has it.
type ends struct {
	Ends time.Time `json:"ends"`
}

// hashOf is how a secret that somebody else holds is stored. They have 32 random
// bytes, so a plain hash is enough.
func hashOf(token string) string { return identity.HashToken(identity.NewSecret(token)) }
