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

// Token is what a call carries as its bearer token: an access token or an API
// key.
type Token struct {
	// Value is the token itself. It is a secret.
	Value string `json:"-"`
	// Expiry is when it ends; zero when that is not known or never.
	Expiry time.Time
}

// String hides the value, so that a Token in a log says nothing.
func (t Token) String() string { return "[token]" }

// GoString hides the value as String does.
func (t Token) GoString() string { return t.String() }

// TokenSource gives the token of the next call. It is asked before every
// attempt, by many goroutines at a time, so it keeps a token as long as it is
// good.
type TokenSource interface {
	Token(ctx context.Context) (Token, error)
}

// Invalidator is a TokenSource that can be told that the server refused a token.
// The call is then sent once more with what Token gives next, if that is another
// one.
type Invalidator interface {
	TokenSource
	// Invalidate says that the server takes this token no more.
	Invalidate(Token)
}

// StaticToken is a TokenSource with one token that does not change, such as an
// API key.
func StaticToken(value string) TokenSource { return staticToken(value) }

type staticToken string

func (t staticToken) Token(context.Context) (Token, error) { return Token{Value: string(t)}, nil }

// fileCheck is how long what a file held is taken for what it holds.
const fileCheck = 10 * time.Second

// FileToken is a TokenSource with the token in a file, white space around it
// cut. The file is read again when it has changed (looked at every ten seconds)
// and when the server refuses the token.
func FileToken(path string) TokenSource { return &fileToken{path: path} }

type fileToken struct {
	path string

	// mu guards what follows; nobody holds it for longer than a read of the file.
	mu      sync.Mutex
	token   Token
	modTime time.Time
	checked time.Time
}

func (f *fileToken) Token(context.Context) (Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.token.Value != "" && now.Sub(f.checked) < fileCheck {
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
		return Token{}, errors.New("the token file " + f.path + " is empty")
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
