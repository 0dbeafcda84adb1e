package sums

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// Signatures have the format of ssh-keygen -Y sign (PROTOCOL.sshsig of OpenSSH), because Linux, macOS and Windows
// have ssh-keygen, which verifies them. They are made here so that the key may be in an environment variable.
// A signature of the kind ed25519 contains no random number: equal files have equal signatures.

const (
	// identity is the name of the signer in the file allowed_signers, and namespace is the purpose of a
	// signature. ssh-keygen -Y verify gets both.
	identity  = "release@freshet"
	namespace = "file"

	magic         = "SSHSIG"
	hashAlgorithm = "sha512"
)

// releaseKey is the private key of the releases.
type releaseKey struct{ signer ssh.Signer }

// parseKey reads an OpenSSH private key of the kind ed25519.
func parseKey(text []byte) (*releaseKey, error) {
	raw, err := ssh.ParseRawPrivateKey(text)
	var protected *ssh.PassphraseMissingError
	if errors.As(err, &protected) {
		return nil, errors.New("it has a passphrase; use a key without one: ssh-keygen -p -N '' -f FILE")
	}
	if err != nil {
		return nil, fmt.Errorf("it is not an OpenSSH private key; create one with: ssh-keygen -t ed25519 -f FILE: %w", err)
	}
	key, ok := raw.(*ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("it is not of the kind ed25519; create one with: ssh-keygen -t ed25519 -f FILE")
	}
	signer, err := ssh.NewSignerFromKey(*key)
	if err != nil {
		return nil, err
	}
	return &releaseKey{signer}, nil
}

// allowedSigner returns the public key as a line of a file for ssh-keygen -Y verify -f.
func (k *releaseKey) allowedSigner() []byte {
	line := identity + ` namespaces="` + namespace + `" `
	return append([]byte(line), ssh.MarshalAuthorizedKey(k.signer.PublicKey())...)
}

// sign returns the signature of content as ssh-keygen -Y sign writes it.
func (k *releaseKey) sign(content []byte) ([]byte, error) {
	sum := sha512.Sum512(content)
	signed := append([]byte(magic), ssh.Marshal(struct{ Namespace, Reserved, Hash, Sum string }{
		namespace, "", hashAlgorithm, string(sum[:]),
	})...)
	signature, err := k.signer.Sign(nil, signed)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	blob := append([]byte(magic), ssh.Marshal(struct {
		Version                                         uint32
		PublicKey, Namespace, Reserved, Hash, Signature string
	}{1, string(k.signer.PublicKey().Marshal()), namespace, "", hashAlgorithm, string(ssh.Marshal(signature))})...)
	return pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob}), nil
}
