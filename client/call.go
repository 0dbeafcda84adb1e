package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxResponse is the default of Request.MaxResponse.
const maxResponse = 64 << 20

// Request is one call. Packages schemas and resources are based on it. Programs need it only
// for calls that the packages do not cover.
type Request struct {
	Method string
	// Path is appended to the server's URL. It starts with a slash and is escaped.
	// Client.ClusterPath returns the path for the cluster.
	Path   string
	Query  url.Values
	Header http.Header
	Body   []byte
	// Idempotent allows retries when the server may have handled the call. GET and HEAD are
	// always idempotent.
	Idempotent bool
	// Timeout is the timeout of each attempt; the Client's when zero.
	Timeout time.Duration
	// MaxResponse is the maximum size of the response body; 64 MiB when zero.
	MaxResponse int64
}

// Response is the response to a successful call: its status is below 300.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON decodes the body into value.
func (r *Response) JSON(value any) error {
	if err := json.Unmarshal(r.Body, value); err != nil {
		return fmt.Errorf("server response is not the expected JSON: %w", err)
	}
	return nil
}

// Do makes a call and reads the response. A response with status 300 or above is an *Error.
//
// Do makes at most Config.MaxAttempts attempts, with exponential backoff from 0.1 s to 5 s
// and 50 % jitter, or the server's Retry-After if that is at most 30 s. It retries:
//
//   - any call that the server cannot have handled: the connection could not be opened, or
//     the status is 429;
//   - idempotent calls (GET, HEAD, Request.Idempotent) also after a broken connection, a
//     timeout of the attempt, and status 502, 503 or 504;
//   - once, a call with status 401 if the TokenSource has another token.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	var response *Response
	err := c.attempt(ctx, r, func(ctx context.Context) error {
		timeout := r.Timeout
		if timeout <= 0 {
			timeout = c.timeout
		}
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		result, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		defer result.Body.Close()
		limit := r.MaxResponse
		if limit <= 0 {
			limit = maxResponse
		}
		body, err := io.ReadAll(io.LimitReader(result.Body, limit+1))
		if err != nil {
			return &unreachable{fmt.Errorf("reading the response: %w", err)}
		}
		if int64(len(body)) > limit {
			return permanent(fmt.Errorf("server response has more than %d bytes", limit))
		}
		response = &Response{Status: result.StatusCode, Header: result.Header, Body: body}
		return nil
	})
	return response, err
}

// Stream makes a call whose response is read incrementally: events, watches, exports. It
// retries like Do until the response starts. The caller must close the body; canceling the
// context aborts it.
func (c *Client) Stream(ctx context.Context, r *Request) (*http.Response, error) {
	var response *http.Response
	err := c.attempt(ctx, r, func(ctx context.Context) (err error) {
		response, err = c.send(ctx, r) //nolint:bodyclose // the caller closes it
		return err
	})
	return response, err
}

// attempt calls call with retries.
func (c *Client) attempt(ctx context.Context, r *Request, call func(context.Context) error) error {
	repeatable := r.Idempotent || r.Method == http.MethodGet || r.Method == http.MethodHead
	policy := retryPolicy{attempts: c.attempts}
	return policy.do(ctx, repeatable, call)
}

// send makes one attempt, and a second one if the status is 401 and the TokenSource has
// another token.
func (c *Client) send(ctx context.Context, r *Request) (*http.Response, error) {
	if c.tokens == nil {
		return c.sendAs(ctx, r, Token{})
	}
	token, err := c.tokens.Token(ctx)
	if err != nil {
		return nil, permanent(err)
	}
	response, err := c.sendAs(ctx, r, token)
	source, ok := c.tokens.(Invalidator)
	if !ok || !errors.Is(err, ErrUnauthenticated) {
		return response, err
	}
	source.Invalidate(token)
	next, nextErr := source.Token(ctx)
	if nextErr != nil || next.Value == token.Value {
		return response, err // the error of the server is more useful
	}
	return c.sendAs(ctx, r, next)
}

func (c *Client) sendAs(ctx context.Context, r *Request, token Token) (*http.Response, error) {
	target := c.base.String() + r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	var body io.Reader = http.NoBody
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, permanent(fmt.Errorf("creating the request: %w", err))
	}
	if strings.ContainsFunc(token.Value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, permanent(fmt.Errorf("%w: token contains spaces, line breaks or other invalid characters",
			ErrUnauthenticated))
	}
	if err := setHeader(request, r.Header); err != nil {
		return nil, permanent(err)
	}
	request.Header.Set("User-Agent", c.agent)
	if token.Value != "" {
		request.Header.Set("Authorization", "Bearer "+token.Value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		return nil, newError(response)
	}
	return response, nil
}

// setHeader copies header fields. It returns an error for values that HTTP does not allow.
func setHeader(request *http.Request, header http.Header) error {
	for name, values := range header {
		for _, value := range values {
			if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return fmt.Errorf("%w: header %s contains a control character", ErrInvalid, name)
			}
		}
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	return nil
}
