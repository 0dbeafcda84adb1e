// Package tokencache keeps access tokens from one command to the next, so that the
// token endpoint is not asked for every one of them: files of mode 0600 in the
// user's cache directory, whose names are hashes and which are worth no more than
// the credentials that they came from.
package tokencache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"freshet/client"
	"freshet/internal/cli/contexts"
)

// Directory is where tokens are kept.
func Directory(getenv func(string) string) string {
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "freshet", "tokens")
	}
	return filepath.Join(getenv("HOME"), ".cache", "freshet", "tokens")
}

// early is how long before its end a token is no longer handed out: kubectl and
// others use it for a while after they got it.
const early = time.Minute

// source is a TokenSource with a file in front.
type source struct {
	from client.TokenSource
	path string
}

// entry is the contents of a file.
type entry struct {
	Token  string    `json:"token"`
	Expiry time.Time `json:"expiry"`
}

// New puts a file in the directory in front of a source. The key says all that a
// token depends on: who asks, where, and what for.
func New(from client.TokenSource, directory string, key ...string) client.TokenSource {
	sum := sha256.Sum256([]byte(strings.Join(key, "\x00")))
	return &source{from, filepath.Join(directory, hex.EncodeToString(sum[:16])+".json")}
}

// Token is the kept one while it is good, else a new one. A cache that cannot be
// read or written is none.
func (s *source) Token(ctx context.Context) (client.Token, error) {
	var kept entry
	if text, err := os.ReadFile(s.path); err == nil && json.Unmarshal(text, &kept) == nil && kept.Token != "" &&
		time.Now().Add(early).Before(kept.Expiry) {
		return client.Token{Value: kept.Token, Expiry: kept.Expiry}, nil
	}
	token, err := s.from.Token(ctx)
	if err != nil || token.Expiry.IsZero() {
		return token, err
	}
	text, err := json.Marshal(entry{token.Value, token.Expiry})
	if err == nil && os.MkdirAll(filepath.Dir(s.path), 0o700) == nil {
		_ = contexts.WritePrivate(s.path, text) // then the next command asks again
	}
	return token, nil
}

// Invalidate implements client.Invalidator: the server has refused the token.
func (s *source) Invalidate(refused client.Token) {
	_ = os.Remove(s.path) // a token that stays is refused once more
	if from, ok := s.from.(client.Invalidator); ok {
		from.Invalidate(refused)
	}
}

// Clear forgets all tokens.
func Clear(directory string) error {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
