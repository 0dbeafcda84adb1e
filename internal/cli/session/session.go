// Package session implements the session of a user on this machine: the device
// authorization that starts it (RFC 8628), the file that stores it, and the token source
// that renews it. Package contexts refers to the file; package authcmd has the commands.
//
// A refresh token can be used once. A second use ends the session, except for a retry
// within a minute (docs/spec/signin.md#tokens). Therefore:
//   - only one process renews a session at a time, under a file lock;
//   - the new tokens are on disk before they are used;
//   - a request without a response is retried with the same refresh token.
//
// Locks, in the order in which they are taken:
//
//	source.mu  the cached token of one source; held while the session is renewed
//	file lock  .NAME.lock next to the session file; serializes renewals of all processes
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"freshet.dev/client"
	"freshet/internal/base/errs"
	"freshet/internal/base/filelock"
	"freshet/internal/base/retry"
	"freshet/internal/base/version"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// Session is the content of a session file. Tokens are renewed at its own server, even if
// flags select another one, so that the refresh token is sent nowhere else.
type Session struct {
	Server string `json:"server"`
	// CA is the certificate authority to trust in addition to the system's (PEM).
	CA string `json:"certificateAuthority,omitempty"`
	// Principal is the principal of the user.
	Principal string `json:"principal"`
	// Ends is when the session expires unless it is renewed.
	Ends time.Time `json:"ends"`

	RefreshToken string    `json:"refreshToken"`
	AccessToken  string    `json:"accessToken"`
	Expiry       time.Time `json:"expiry"`
	// RenewAt is when the access token must be renewed. It is before Expiry, because
	// kubectl and other programs use a token for a while after they got it.
	RenewAt time.Time `json:"renewAt"`

	transport http.RoundTripper // replaces the default transport in tests
}

// String hides the secrets.
func (s *Session) String() string { return "[session of " + s.Principal + "]" }

// GoString hides the secrets as String does.
func (s *Session) GoString() string { return s.String() }

// Read reads the file of a session.
func Read(path string) (*Session, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(errs.Newf(errs.Unauthenticated, "you are not signed in: session file %s does not exist",
			path), signInAgain)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the session: %w", err)
	}
	var s Session
	if err := json.Unmarshal(text, &s); err != nil || s.Server == "" || s.RefreshToken == "" {
		return nil, hint.Add(errs.Newf(errs.Invalid, "file %s is not a session file", path), signInAgain)
	}
	return &s, nil
}

const signInAgain = "Sign in again with 'freshet login'."

// Store writes a new session, and returns the session that it replaces, or nil.
func Store(ctx context.Context, path string, s *Session) (before *Session, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	before, err = Read(path)
	if err != nil {
		before = nil // no session, or not a session file
	}
	return before, s.write(path)
}

func (s *Session) write(path string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return contexts.WritePrivate(path, text)
}

// lockRetryInterval is the interval at which a lock held by another process is retried.
const lockRetryInterval = 10 * time.Millisecond

// lock waits until no other process renews the session. The lock file is never removed:
// otherwise two processes could hold locks on two files of the same name.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	// Names of contexts do not begin with a dot, so the lock file is not a session file.
	file, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"),
		os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the session: %w", err)
	}
	for {
		err := filelock.Try(file)
		if err == nil {
			return file.Close, nil // releases the lock
		}
		if !errors.Is(err, filelock.ErrHeld) {
			return nil, errors.Join(fmt.Errorf("locking the session: %w", err), file.Close())
		}
		if err := retry.Sleep(ctx, lockRetryInterval); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
}

const grantRefresh = "refresh_token"

// clientID is the OAuth client id of the command line.
const clientID = "freshet-cli"

// tokenResponse is a response of the token endpoint.
type tokenResponse struct {
	AccessToken      string `json:"access_token"`
	ExpiresIn        int64  `json:"expires_in"`
	RefreshToken     string `json:"refresh_token"`
	RefreshExpiresIn int64  `json:"refresh_token_expires_in"`
}

// maxResponse limits the size of a response in bytes.
const maxResponse = 1 << 20

// post sends a form to the session's server. If repeatable is set, it retries a request
// without a response.
func (s *Session) post(ctx context.Context, path string, form url.Values, repeatable bool) (*client.Response, error) {
	timeout := callTimeout
	if repeatable {
		timeout = renewTimeout
	}
	conn, err := client.New(client.Config{
		BaseURL: s.Server, CA: []byte(s.CA), UserAgent: "freshet/" + version.Get().Version, Timeout: timeout,
		MaxAttempts: maxAttempts, Transport: s.transport,
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	form.Set("client_id", clientID)
	return conn.Do(ctx, &client.Request{
		Method: http.MethodPost, Path: path, Body: []byte(form.Encode()), MaxResponse: maxResponse,
		Idempotent: repeatable,
		Header:     http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
	})
}

// callTimeout bounds a call, renewTimeout one attempt to renew. All attempts and the
// backoff between them fit into the minute in which the server accepts a retry.
const (
	callTimeout  = 30 * time.Second
	renewTimeout = 12 * time.Second
	maxAttempts  = 4
)

// requestTokens sends a request to the token endpoint, and stores the tokens of the response in s.
func (s *Session) requestTokens(ctx context.Context, form url.Values) error {
	requested := time.Now()
	// Only a refresh can be retried: a lost response consumes other grants.
	response, err := s.post(ctx, "/oauth/token", form, form.Get("grant_type") == grantRefresh)
	if err != nil {
		return err
	}
	var got tokenResponse
	if err := response.JSON(&got); err != nil {
		return err
	}
	if got.AccessToken == "" || got.RefreshToken == "" {
		return errs.Newf(errs.Invalid, "token endpoint of %s returned no token", s.Server)
	}
	life := time.Duration(max(got.ExpiresIn, 1)) * time.Second
	s.AccessToken, s.RefreshToken, s.Expiry = got.AccessToken, got.RefreshToken, requested.Add(life)
	s.RenewAt = s.Expiry.Add(-min(life/2, time.Minute))
	if got.RefreshExpiresIn > 0 {
		s.Ends = requested.Add(time.Duration(got.RefreshExpiresIn) * time.Second).Truncate(time.Second)
	}
	return nil
}

// Revoke ends the session on its server.
func (s *Session) Revoke(ctx context.Context) error {
	_, err := s.post(ctx, "/oauth/revoke", url.Values{"token": {s.RefreshToken}}, true)
	return err
}

// End ends the session of a file on its server, under the file lock, so that no process
// renews it at the same time. The caller removes the file.
func End(ctx context.Context, path string) (err error) {
	unlock, err := lock(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	s, err := Read(path)
	if err != nil {
		return err
	}
	return s.Revoke(ctx)
}
