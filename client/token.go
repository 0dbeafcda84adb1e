package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Token is a bearer token: an access token or an API key.
type Token struct {
	// Value is the token. It is a secret.
	Value string `json:"-"`
	// Expiry is when the token expires; zero if that is unknown or never.
	Expiry time.Time
}

// String redacts the value.
func (t Token) String() string { return "[token]" }

// GoString redacts the value.
func (t Token) GoString() string { return t.String() }

// TokenSource returns the token of a call. The client calls it before every attempt, from many
// goroutines, so it should cache a token while it is valid.
type TokenSource interface {
	Token(ctx context.Context) (Token, error)
}

// Invalidator is a TokenSource that the client notifies when the server has rejected a token.
// The client then retries the call once if Token returns another token.
type Invalidator interface {
	TokenSource
	// Invalidate is called with a token that the server has rejected.
	Invalidate(Token)
}

// StaticToken returns a TokenSource with a fixed token, such as an API key.
func StaticToken(value string) TokenSource { return staticToken(value) }

type staticToken string

func (t staticToken) Token(context.Context) (Token, error) { return Token{Value: string(t)}, nil }

// fileCheckInterval is the interval at which a token file is checked for changes.
const fileCheckInterval = 10 * time.Second

// FileToken returns a TokenSource that reads the token from a file and trims white space. It
// reads the file again when it has changed, which it checks every ten seconds, and when the
// server rejects the token.
func FileToken(path string) TokenSource { return &fileToken{path: path} }

type fileToken struct {
	path string

	// mu protects the fields below. It is held while the file is read.
	mu      sync.Mutex
	token   Token
	modTime time.Time
	checked time.Time
}

func (f *fileToken) Token(context.Context) (Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.token.Value != "" && now.Sub(f.checked) < fileCheckInterval {
		return f.token, nil
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return Token{}, fmt.Errorf("reading the token: %w", err)
	}
	if f.token.Value != "" && info.ModTime().Equal(f.modTime) {
		f.checked = now
		return f.token, nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return Token{}, fmt.Errorf("reading the token: %w", err)
	}
	value := strings.TrimSpace(string(text))
	if value == "" {
		return Token{}, errors.New("token file " + f.path + " is empty")
	}
	f.token, f.modTime, f.checked = Token{Value: value}, info.ModTime(), now
	return f.token, nil
}

func (f *fileToken) Invalidate(refused Token) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token.Value == refused.Value {
		f.token = Token{}
	}
}
