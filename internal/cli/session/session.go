// Package session is how a person is signed in on this machine: the device code of
// RFC 8628 that begins it, the file that keeps it, and the token source that renews
// it. A refresh token is good once, and one that is used twice ends the session unless
// it is at once (docs/spec/signin.md#tokens). So processes renew one at a time, under a
// lock on a file beside the session's; what the server answers is on the disk before it
// is used; and when there is no answer the same question is asked again.
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
	"syscall"
	"time"

	"freshet/client"
	"freshet/internal/base/errs"
	"freshet/internal/base/version"
	"freshet/internal/cli/contexts"
	"freshet/internal/cli/hint"
)

// Session is what the file holds. Its server is asked for new tokens, whatever
// server a command line names: the refresh token goes nowhere else.
type Session struct {
	Server string `json:"server"`
	// CA is the authority to trust besides the system's (PEM).
	CA string `json:"certificateAuthority,omitempty"`
	// Principal is who signed in.
	Principal string `json:"principal"`
	// Ends is when the session is over unless it is renewed before.
	Ends time.Time `json:"ends"`

	RefreshToken string    `json:"refreshToken"`
	AccessToken  string    `json:"accessToken"`
	Expiry       time.Time `json:"expiry"`
	// RenewAt is when the access token is no longer handed out: kubectl and others
	// use it for a while after they got it.
	RenewAt time.Time `json:"renewAt"`

	transport http.RoundTripper // in place of the client's own, when there is one
}

// String hides the secrets.
func (s *Session) String() string { return "[session of " + s.Principal + "]" }

// GoString hides the secrets as String does.
func (s *Session) GoString() string { return s.String() }

// Read reads the file of a session.
func Read(path string) (*Session, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Add(errs.Newf(errs.Unauthenticated, "you are not signed in any more: %s is gone", path),
			signInAgain)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the session: %w", err)
	}
	var s Session
	if err := json.Unmarshal(text, &s); err != nil || s.Server == "" || s.RefreshToken == "" {
		return nil, hint.Add(errs.Newf(errs.Invalid, "%s is not the file of a session", path), signInAgain)
	}
	return &s, nil
}

const signInAgain = "Sign in again with 'freshet login'."

// Keep writes a new session, and returns the one that it takes the place of, if
// there was one.
func Keep(ctx context.Context, path string, s *Session) (before *Session, err error) {
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
		before = nil // there was none, or something else
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

// lockPause is how often a lock that another process holds is tried.
const lockPause = 10 * time.Millisecond

// lock waits until no other process renews the session. The file of the lock stays:
// were it removed, two processes could hold locks on two files of the same name.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	// The names of contexts begin with no dot, so this is none of theirs.
	file, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"),
		os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the session: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a file descriptor is small
		if err == nil {
			return file.Close, nil // which ends the lock
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking the session: %w", err), file.Close())
		}
		if err := pause(ctx, lockPause); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

const grantRefresh = "refresh_token"

// clientID is what the server knows the command line by.
const clientID = "freshet-cli"

// answer is that of the token endpoint.
type answer struct {
	AccessToken      string `json:"access_token"`
	ExpiresIn        int64  `json:"expires_in"`
	RefreshToken     string `json:"refresh_token"`
	RefreshExpiresIn int64  `json:"refresh_token_expires_in"`
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20

// post sends a form to the session's server. What may be repeated is sent again when
// there is no answer.
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
		Method: http.MethodPost, Path: path, Body: []byte(form.Encode()), MaxResponse: maxAnswer,
		Idempotent: repeatable,
		Header:     http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
	})
}

// callTimeout bounds a call, renewTimeout an attempt to renew: all of them, and the
// waits between, are within the minute that the server grants.
const (
	callTimeout  = 30 * time.Second
	renewTimeout = 12 * time.Second
	maxAttempts  = 4
)

// ask asks the token endpoint, and takes over what it answers.
func (s *Session) ask(ctx context.Context, form url.Values) error {
	asked := time.Now()
	// Other grants are used up by an answer that is lost.
	response, err := s.post(ctx, "/oauth/token", form, form.Get("grant_type") == grantRefresh)
	if err != nil {
		return err
	}
	var got answer
	if err := response.JSON(&got); err != nil {
		return err
	}
	if got.AccessToken == "" || got.RefreshToken == "" {
		return errs.Newf(errs.Invalid, "%s does not answer as a token endpoint does: there is no token", s.Server)
	}
	life := time.Duration(max(got.ExpiresIn, 1)) * time.Second
	s.AccessToken, s.RefreshToken, s.Expiry = got.AccessToken, got.RefreshToken, asked.Add(life)
	s.RenewAt = s.Expiry.Add(-min(life/2, time.Minute))
	if got.RefreshExpiresIn > 0 {
		s.Ends = asked.Add(time.Duration(got.RefreshExpiresIn) * time.Second).Truncate(time.Second)
	}
	return nil
}

// Revoke ends the session at its server.
func (s *Session) Revoke(ctx context.Context) error {
	_, err := s.post(ctx, "/oauth/revoke", url.Values{"token": {s.RefreshToken}}, true)
	return err
}

// End ends the session of a file at its server. The file stays, for whoever called
// to remove: nobody renews meanwhile.
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
