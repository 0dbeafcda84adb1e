// Package sums writes the checksums of all published files, and signs them.
package sums

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"freshet/tools/release/plan"
)

// The names of the files that this package writes, beside the published files.
const (
	fileName      = "SHA256SUMS"
	signatureName = fileName + ".sig"
	signersName   = "allowed_signers"
)

// KeyVariable is the environment variable with the private key: the text of an OpenSSH private key of the kind
// ed25519 without a passphrase, or the path of a file with one.
const KeyVariable = "FRESHET_RELEASE_KEY"

// Build writes SHA256SUMS over all files of the release, in the form of sha256sum, and signs it if there is a
// key. Run it last.
func Build(_ context.Context, p *plan.Plan) error {
	for _, name := range []string{fileName, signatureName, signersName} {
		if err := os.RemoveAll(filepath.Join(p.Dist, name)); err != nil {
			return err
		}
	}
	files, err := os.ReadDir(p.Dist) // sorted by name
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	for _, file := range files {
		if !file.Type().IsRegular() {
			continue // the folder of the stage, the documentation site
		}
		sum, err := hash(filepath.Join(p.Dist, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum, file.Name())
	}
	if lines.Len() == 0 {
		return fmt.Errorf("%s has no files; run the other commands first", p.Dist)
	}
	if err := os.WriteFile(filepath.Join(p.Dist, fileName), lines.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Print(lines.String())
	return signFile(p.Dist, lines.Bytes())
}

// signFile writes the signature of the checksums and the public key.
func signFile(folder string, content []byte) error {
	text := os.Getenv(KeyVariable)
	if text == "" {
		fmt.Fprintln(os.Stderr, "release: "+KeyVariable+" is not set, so "+fileName+" is NOT SIGNED")
		return nil
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN") {
		data, err := os.ReadFile(text)
		if err != nil {
			return fmt.Errorf("reading the key that %s names: %w", KeyVariable, err)
		}
		text = string(data)
	}
	key, err := parseKey([]byte(text))
	if err != nil {
		return fmt.Errorf("the key in %s: %w", KeyVariable, err)
	}
	signature, err := key.sign(content)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, signatureName), signature, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, signersName), key.allowedSigner(), 0o644)
}

func hash(file string) ([]byte, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
