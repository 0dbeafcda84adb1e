// Package passkeytest simulates a browser and a device with a passkey. Tests can also make
// it send wrong responses. Only tests import it.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
)

// Flags of the authenticator data.
const (
	Present      = 0x01
	Verified     = 0x04
	attestedData = 0x40
)

// Device has one passkey. Tests may change its fields between responses.
type Device struct {
	ID     []byte
	Owner  []byte // the user handle
	Host   string // the relying party ID that it signs
	Origin string // the origin that the browser reports
	Flags  byte
	Count  uint32 // increases with every response unless it is 0

	t   testing.TB
	key *ecdsa.PrivateKey
}

// New returns a device for an origin of a host.
func New(t testing.TB, origin, host string) *Device {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 32)
	_, _ = rand.Read(id) // never fails
	return &Device{ID: id, Host: host, Origin: origin, Flags: Present | Verified, Count: 1, t: t, key: key}
}

// options is the part of the WebAuthn options that a device reads.
type options struct {
	Challenge string `json:"challenge"`
	User      struct {
		ID string `json:"id"`
	} `json:"user"`
}

func (d *Device) read(text string) (o options) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		d.t.Fatalf("decoding the options %q: %v", text, err)
	}
	return o
}

func (d *Device) client(kind, challenge string) []byte {
	return d.json(map[string]any{"type": kind, "challenge": challenge, "origin": d.Origin, "crossOrigin": false})
}

func (d *Device) json(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

func (d *Device) cbor(v any) []byte {
	data, err := webauthncbor.Marshal(v)
	if err != nil {
		d.t.Fatal(err)
	}
	return data
}

func (d *Device) data(flags byte) []byte {
	host := sha256.Sum256([]byte(d.Host))
	data := append(host[:], flags)
	data = binary.BigEndian.AppendUint32(data, d.Count)
	if d.Count > 0 {
		d.Count++
	}
	return data
}

// CreateResponse returns the response to a request for a new passkey.
func (d *Device) CreateResponse(request string) string {
	d.t.Helper()
	opts := d.read(request)
	owner, err := base64.RawURLEncoding.DecodeString(opts.User.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Owner = owner
	data := append(d.data(d.Flags|attestedData), make([]byte, 16)...) // AAGUID of an unknown model
	data = binary.BigEndian.AppendUint16(data, uint16(len(d.ID)))
	data = append(data, d.ID...)
	public, err := d.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		d.t.Fatal(err)
	}
	data = append(data, d.cbor(map[int]any{1: 2, 3: -7, -1: 1, -2: public[1:33], -3: public[33:]})...)
	object := d.cbor(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	return d.credential(map[string]any{
		"clientDataJSON": b64(d.client("webauthn.create", opts.Challenge)), "attestationObject": b64(object),
		"transports": []string{"internal"},
	})
}

// SignInResponse returns the response to a request for any passkey.
func (d *Device) SignInResponse(request string) string {
	d.t.Helper()
	client, data := d.client("webauthn.get", d.read(request).Challenge), d.data(d.Flags)
	hash := sha256.Sum256(client)
	sum := sha256.Sum256(append(data[:len(data):len(data)], hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.key, sum[:])
	if err != nil {
		d.t.Fatal(err)
	}
	return d.credential(map[string]any{
		"clientDataJSON": b64(client), "authenticatorData": b64(data),
		"signature": b64(signature), "userHandle": b64(d.Owner),
	})
}

func (d *Device) credential(response map[string]any) string {
	return string(d.json(map[string]any{
		"id": b64(d.ID), "rawId": b64(d.ID), "type": "public-key", "response": response,
		"clientExtensionResults": map[string]any{}, "authenticatorAttachment": "platform",
	}))
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
