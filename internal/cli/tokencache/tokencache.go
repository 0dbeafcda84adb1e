// Package tokencache caches the access tokens of service accounts between commands, so that
// not every command requests a new one. The cache is a directory of files with mode 0600
// and hashed names in the user's cache directory. A cached token gives no more access than
// the credentials that it was requested with. Sessions of users are in package session.
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

	"freshet.dev/client"
	"freshet/internal/cli/contexts"
)

// Directory returns the directory of the cache.
func Directory(getenv func(string) string) string {
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "freshet", "tokens")
	}
	return filepath.Join(getenv("HOME"), ".cache", "freshet", "tokens")
}

// expiryMargin is the time before its expiry from which on a cached token is not used, because
// kubectl and other programs use a token for a while after they got it.
const expiryMargin = time.Minute

// source is a TokenSource with a cache file.
type source struct {
	from client.TokenSource
	path string
}

// entry is the content of a cache file.
type entry struct {
	Token  string    `json:"token"`
	Expiry time.Time `json:"expiry"`
}

// New adds a cache file to a source. The key must contain everything that a token depends
// on: the endpoint, the credentials and the audience.
func New(from client.TokenSource, directory string, key ...string) client.TokenSource {
	sum := sha256.Sum256([]byte(strings.Join(key, "\x00")))
	return &source{from, filepath.Join(directory, hex.EncodeToString(sum[:16])+".json")}
}

// Token returns the cached token if it is valid, else a new one. It ignores a cache that
// cannot be read or written.
func (s *source) Token(ctx context.Context) (client.Token, error) {
	var cached entry
	if text, err := os.ReadFile(s.path); err == nil && json.Unmarshal(text, &cached) == nil && cached.Token != "" &&
		time.Now().Add(expiryMargin).Before(cached.Expiry) {
		return client.Token{Value: cached.Token, Expiry: cached.Expiry}, nil
	}
	token, err := s.from.Token(ctx)
	if err != nil || token.Expiry.IsZero() {
		return token, err
	}
	text, err := json.Marshal(entry{token.Value, token.Expiry})
	if err == nil && os.MkdirAll(filepath.Dir(s.path), 0o700) == nil {
		_ = contexts.WritePrivate(s.path, text) // on failure the next command requests a token
	}
	return token, nil
}

// Invalidate implements client.Invalidator. It removes a token that the server rejected.
func (s *source) Invalidate(refused client.Token) {
	_ = os.Remove(s.path) // if it fails, the server rejects the token once more
	if from, ok := s.from.(client.Invalidator); ok {
		from.Invalidate(refused)
	}
}

// Clear removes all cached tokens.
func Clear(directory string) error {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}
