package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Credentials are the contents of a service account's credentials file.
type Credentials struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ClientEmail  string `json:"client_email,omitempty"`
	IssuerURL    string `json:"issuer_url"`
}

// String redacts the secret.
func (c Credentials) String() string { return "[credentials of " + c.ClientID + "]" }

// GoString redacts the secret.
func (c Credentials) GoString() string { return c.String() }

// LogValue redacts the secret.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// ReadCredentials reads a service account's credentials file.
func ReadCredentials(path string) (Credentials, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("reading the credentials: %w", err)
	}
	var c Credentials
	if err := json.Unmarshal(text, &c); err != nil {
		return Credentials{}, fmt.Errorf("%s is not a credentials file: it is not valid JSON", path)
	}
	if c.ClientID == "" || c.ClientSecret == "" {
		return Credentials{}, fmt.Errorf("%s is not a credentials file: it has no client_id and client_secret", path)
	}
	return c, nil
}

// CredentialsOptions configure ClientCredentials.
type CredentialsOptions struct {
	// TokenURL is the token endpoint; when empty, /oauth/token at the issuer of the
	// credentials.
	TokenURL string
	// Audience is the audience of the tokens: urn:vendor:messaging:ORGANIZATION:INSTANCE for
	// the messages and schemas of an instance's clusters. Without one, tokens are only for
	// the resource API.
	Audience string
	// CA contains PEM certificates, as in Config.
	CA []byte
	// Transport replaces the default transport; CA must be empty then.
	Transport http.RoundTripper
}

// ClientCredentials returns a TokenSource that requests access tokens from the token endpoint.
// It caches a token until 10 % of its lifetime, but at most one minute, is left. Concurrent
// calls share one request. If the endpoint is not reachable while the old token is valid, it
// returns the old token.
func ClientCredentials(credentials Credentials, options CredentialsOptions) (TokenSource, error) {
	endpoint := options.TokenURL
	if endpoint == "" {
		if credentials.IssuerURL == "" {
			return nil, errors.New("credentials have no issuer_url; set CredentialsOptions.TokenURL")
		}
		endpoint = strings.TrimRight(credentials.IssuerURL, "/") + "/oauth/token"
	}
	if _, err := parseBase(endpoint); err != nil {
		return nil, fmt.Errorf("parsing the token endpoint: %w", err)
	}
	if credentials.ClientID == "" || credentials.ClientSecret == "" {
		return nil, errors.New("credentials have no client id or no client secret")
	}
	transport := options.Transport
	if transport == nil {
		var err error
		if transport, err = newTransport(options.CA); err != nil {
			return nil, err
		}
	}
	return &clientCredentials{
		credentials: credentials, endpoint: endpoint, audience: options.Audience,
		http: newHTTP(transport), retry: retryPolicy{attempts: defaultAttempts},
	}, nil
}

type clientCredentials struct {
	credentials Credentials
	endpoint    string
	audience    string
	http        *http.Client
	retry       retryPolicy

	// mu protects the fields below. It is not held during a request.
	mu      sync.Mutex
	token   Token
	renewAt time.Time
	running *tokenRequest // the running request, or nil
}

// tokenRequest is a running request for a token. token and err are set before done is closed.
type tokenRequest struct {
	done  chan struct{}
	token Token
	err   error
}

// tokenTimeout is the timeout of one request for a token with its retries.
const tokenTimeout = 30 * time.Second

func (s *clientCredentials) Token(ctx context.Context) (Token, error) {
	s.mu.Lock()
	now := time.Now()
	if s.token.Value != "" && now.Before(s.renewAt) {
		defer s.mu.Unlock()
		return s.token, nil
	}
	current := s.running
	if current == nil {
		current = &tokenRequest{done: make(chan struct{})}
		s.running = current
		// Other callers wait for the same request, so it must not be canceled with the
		// context of the first caller.
		go s.requestToken(context.WithoutCancel(ctx), current)
	}
	s.mu.Unlock()
	select {
	case <-current.done:
		return current.token, current.err
	case <-ctx.Done():
		return Token{}, context.Cause(ctx)
	}
}

func (s *clientCredentials) Invalidate(refused Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token.Value == refused.Value {
		s.token = Token{}
	}
}

// requestToken requests a token and notifies all waiting callers.
func (s *clientCredentials) requestToken(ctx context.Context, a *tokenRequest) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	requestedAt := time.Now()
	token, err := s.fetch(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		life := token.Expiry.Sub(requestedAt)
		s.token, s.renewAt = token, token.Expiry.Add(-min(life/10, time.Minute))
	case s.token.Value != "" && time.Now().Before(s.token.Expiry):
		token, err = s.token, nil
		s.renewAt = time.Now().Add(time.Second)
	}
	a.token, a.err = token, err
	s.running = nil
	close(a.done)
}

func (s *clientCredentials) fetch(ctx context.Context) (Token, error) {
	form := url.Values{
		"grant_type": {"client_credentials"},
		"client_id":  {s.credentials.ClientID}, "client_secret": {s.credentials.ClientSecret},
	}
	if s.audience != "" {
		form.Set("audience", s.audience)
	}
	requestedAt := time.Now()
	var body []byte
	err := s.retry.do(ctx, true, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := s.http.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return newError(response)
		}
		body, err = io.ReadAll(io.LimitReader(response.Body, 1<<20))
		return err
	})
	if err != nil {
		return Token{}, fmt.Errorf("requesting a token: %w", err)
	}
	var result struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &result); err != nil || result.AccessToken == "" {
		return Token{}, fmt.Errorf("requesting a token: response of %s is not that of a token endpoint", s.endpoint)
	}
	if result.ExpiresIn <= 0 {
		result.ExpiresIn = 60
	}
	return Token{Value: result.AccessToken, Expiry: requestedAt.Add(time.Duration(result.ExpiresIn) * time.Second)}, nil
}
